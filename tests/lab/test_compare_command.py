"""``workbench compare``: a file's pipeline under several architectures, with claims and observations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.cli import main
from workbench.lab import comparing

OWN = """
import pyarrow as pa, workbench as wb
numbers = wb.Stream.from_table(pa.table({"k": [0, 1] * 2_000}), rate=8_000)
stream = numbers.key_by("k").aggregate(c=wb.count()).sink_to(wb.TableSink("counts", upsert_key="k"))
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return str(path)


def test_results_and_costs_are_printed(own: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", own, "snapshots", "at-most-once", "--faults", "task-dies:at=1500", "--parallelism", "2"]
    assert main([*words, "--checkpoint-interval", "50ms"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].split() == ["claimed", "observed", "lost", "doubled", "too", "low", "too", "high"]
    assert [line.split()[:3] for line in out[1:4]] == [
        ["reference", "exactly-once", "exactly-once"],
        ["snapshots", "exactly-once", "exactly-once"],
        ["at-most-once", "at-most-once", "at-most-once"],
    ]
    assert [line.split()[:2] for line in out[5:8]] == [["reference", "0"], ["snapshots", "1"], ["at-most-once", "1"]]
    assert out[8].split() == ["messages", "bytes", "stalls", "ms", "timed", "out", "queued", "zombies"]
    assert [line.split()[0] for line in out[9:12]] == ["reference", "snapshots", "at-most-once"]
    assert max(map(len, out[:12])) <= 80
    assert [line.partition(":")[0] for line in out[12:]] == ["snapshots", "at-most-once", "Every result exactly once"]


def test_the_documents_table_is_printed(own: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", own, "acks", "--faults", "zombie:at=1500,wakes=100", "--documents"]) == 0
    out = capsys.readouterr().out
    assert "flow control" in out
    assert "problematic:" in out
    assert "not tried" in out
    assert "What its replaced task tried when it woke up" in out


def test_the_comparison_is_saved(own: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "own.html"
    assert main(["compare", own, "snapshots", "--json", "--save", str(page)]) == 0
    assert "snapshots: each result once." in page.read_text()
    capsys.readouterr()
    assert main(["compare", own, "snapshots", "--save", str(tmp_path / "own.csv")]) == 2
    refused = capsys.readouterr()
    assert "end the name with .html, .arrow, .parquet" in refused.err
    assert refused.out == ""  # before anything has run


def test_json_has_a_line_for_each(own: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", own, "stop-the-world", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["architecture"], row["failures"], row["observed"]) for row in rows] == [
        ("reference", 0, "exactly-once"),
        ("stop-the-world", 0, "exactly-once"),
    ]


def test_a_broken_claim_is_the_exit_code(
    own: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(comparing, "keeps", lambda row: row["architecture"] != "snapshots")
    assert main(["compare", own, "snapshots", "--json"]) == 1
    capsys.readouterr()


def test_what_is_wrong_is_one_sentence(own: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        ([own, "storm"], "unknown fault_tolerance 'storm'"),
        ([own, "--faults", "task-lives"], "unknown fault 'task-lives'"),
        ([str(tmp_path / "no.py")], "no.py"),
    ):
        assert main(["compare", *words]) == 2
        assert message in capsys.readouterr().err
