"""Inspecting patterns: queries, the steps of a stepping job, and the view of partial matches."""

from __future__ import annotations

import pyarrow as pa
import pytest

import workbench as wb
from workbench.dashboard.views.matches.partials_html import html, ranked, summary


def payments(rate: float | None = None) -> wb.types.KeyedStream:
    """A small payment, another one, a large one, and one that begins a partial match."""
    times = pa.array([0, 1_000_000, 2_000_000, 3_000_000], pa.timestamp("us"))
    table = pa.table({"t": times, "card": ["x"] * 4, "amount": [1, 40, 900, 2]})
    return wb.Stream.from_table(table, event_time="t", rate=rate).key_by("card")


THEFT = wb.pattern("small", "amount < 5").followed_by("large", "amount > 500").within("1min")


def test_the_stepper_plays_a_match() -> None:
    found = payments(rate=1.0).match(THEFT, amount="large.amount").sink_to(wb.TableSink("found"))
    job = found.run("played", driver="stepping", buffer_size=1)
    told = []
    for _ in range(200):
        job.stepper.step()
        told.append(str(job.stepper.scene()))
        if "small → large?" in told[-1]:
            break
    assert "small → large?" in told[-1], told[-1]
    job.stepper.until("amount > 500", "match")
    assert job.wait("60s") == "FINISHED"
    assert job.table("found").to_pylist() == [{"card": "x", "amount": 900}]


ITEMS = [
    (
        {"card": "<b>x</b>"},
        {
            "waiting_rows": 2,
            "partial_matches": [
                {
                    "waits_for": "large",
                    "rows": {"small": [{"card": "<b>x</b>", "amount": n} for n in range(5)]},
                    "begun": "2024-01-01 10:00:00.500000",
                    "until": "2024-01-01 10:01:00",
                }
            ],
        },
    ),
    ({"card": "idle"}, {"waiting_rows": 0, "partial_matches": []}),
    ({"card": "gone"}, None),
]


def test_the_view_lists_what_keys_have_bound_and_wait_for() -> None:
    keys = ranked(ITEMS)
    assert [one.key for one in keys] == [{"card": "<b>x</b>"}]
    told = html(keys, 10)
    assert "<b>small</b> ×5 amount=0 · … · amount=3 · amount=4" in told
    assert "waits for <b>large</b>" in told
    assert "&lt;b&gt;x&lt;/b&gt;" in told
    assert "<b>x</b>" not in told
    assert ">10:00:00.5<" in told
    assert "No key has a partial match" in html([], 10)
    line = summary(keys, 300, 200, "small followed by large")
    assert "<b>1</b> partial matches of <b>1</b> keys of the 200 looked at; 300 keys are known" in line
    assert "2 of their rows wait for the watermark" in line


def test_the_dashboard_of_a_job_with_patterns_has_the_view() -> None:
    job = payments().match(THEFT, n="COUNT(*)").sink_to(wb.DiscardSink()).run("with-patterns")
    job.wait("60s")
    assert "matches" in job.dashboard().view().parts
    other = payments().aggregate(n=wb.count()).sink_to(wb.DiscardSink()).run("without-patterns")
    other.wait("60s")
    assert "matches" not in other.dashboard().view().parts


def test_a_running_key_is_queried() -> None:
    times = pa.array([0, 1_000_000, 2_000_000], pa.timestamp("us"))
    table = pa.table({"t": times, "card": ["x"] * 3, "amount": [1, 40, 41]})
    stream = wb.Stream.from_table(table, event_time="t", rate=5.0)
    job = stream.key_by("card").match(THEFT, n="COUNT(*)").sink_to(wb.DiscardSink()).run("asked")
    with pytest.raises(wb.errors.WorkbenchError):
        job.operator_state("nothing").get("x")
    job.cancel()
