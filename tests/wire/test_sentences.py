"""Sentences as runs of text with marked numbers."""

import pytest

from workbench.wire.sentences import Figure, runs, text_of

MARKED = {
    "Latency 50, because 1,234,567 records wait.": ["50", "1,234,567"],
    "p99 4.0 -> 31 ms, 3 times in 2min": ["4.0", "31 ms", "3 times", "2min"],
    "3.2 GB/s of 7%, -5 d, 3 days": ["3.2 GB/s", "7%", "-5 d", "3"],
    "aggregate[1] of v1.2.3 at 127.0.0.1:9092, on 2013-07-01 at 12:30:05": [],
    "'5' and \"6\" in job-7, row_8, #9, a/10": [],
    "": [],
}


@pytest.mark.parametrize(("text", "figures"), MARKED.items(), ids=lambda each: str(each)[:30])
def test_numbers_are_marked_and_no_names_dates_or_addresses(text: str, figures: list[str]) -> None:
    found = runs(text)
    assert [run.n for run in found if isinstance(run, Figure)] == figures
    assert text_of(found) == text


@pytest.mark.parametrize("piece", ["1,", "1,111", "1.1.", "-", "1", ",111", "1 \t"], ids=repr)
def test_a_long_text_is_read_in_one_pass(piece: str) -> None:
    """Where each character were the start of another search, this would take minutes."""
    text = piece * 50_000 + "a"
    assert text_of(runs(text)) == text
