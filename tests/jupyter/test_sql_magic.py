"""``%%stream_sql`` in a real IPython shell."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import workbench as wb
from workbench.api.kept.job_record import Cell, JobRecord

TIMES = pa.array([0, 5_000_000, 11_000_000], pa.timestamp("us"))


@pytest.fixture
def cells(shell: InteractiveShell) -> Iterator[InteractiveShell]:
    table = pa.table({"user": ["ann", "bob", "ann"], "n": [1, 2, 3], "ts": TIMES})
    shell.user_ns["clicks"] = wb.Stream.from_table(table, event_time="ts")
    shell.user_ns["people"] = pa.table({"who": ["ann"], "city": ["Bonn"]})
    yield shell
    for job in wb.jobs().values():
        if not job.over:
            job.cancel()


def told(shell: InteractiveShell, cell: str) -> str:
    with capture_output() as captured:
        shell.run_cell(cell)
    return str(captured.stdout) + "".join(str(output) for output in captured.outputs)


def test_a_cell_runs_its_query_over_the_variables(cells: InteractiveShell) -> None:
    told(
        cells,
        "%%stream_sql totals -p 2 -o job\n"
        "SELECT user, city, SUM(n) AS total FROM TUMBLE(clicks, ts, INTERVAL '10' SECOND)\n"
        "JOIN people ON user = who GROUP BY user, city, window_start, window_end",
    )
    job = cells.user_ns["job"]
    assert job.wait("60s") == "FINISHED"
    assert sorted(tuple(row.values()) for row in job.table().to_pylist()) == [("ann", "Bonn", 1), ("ann", "Bonn", 3)]


def test_the_job_has_the_name_the_options_and_the_table(cells: InteractiveShell) -> None:
    told(
        cells,
        "%%stream_sql totals -p 2 -o job\n"
        "SELECT user, SUM(n) AS total FROM TUMBLE(clicks, ts, INTERVAL '10' SECOND)\n"
        "GROUP BY user, window_start, window_end",
    )
    job = cells.user_ns["job"]
    assert job.wait("60s") == "FINISHED"
    assert job.name == "totals"
    assert job.status()["parallelism"] == 2
    rows = [tuple(row.values()) for row in job.table().to_pylist()]
    assert sorted(rows) == [("ann", 1), ("ann", 3), ("bob", 2)]


def test_a_mistake_shows_the_line_of_the_cell_and_a_caret(cells: InteractiveShell) -> None:
    shown = told(cells, "%%stream_sql misspelt\nSELECT user\nFROM click")
    assert "line 3, column 6: unknown table 'click': did you mean 'clicks'?" in shown
    assert "    FROM click\n         ^^^^^" in shown
    assert "Traceback" not in shown
    assert "misspelt" not in wb.jobs()


def test_a_view_becomes_a_variable_and_needs_no_name(cells: InteractiveShell) -> None:
    told(cells, "%%stream_sql\nCREATE TEMPORARY VIEW few AS SELECT n FROM clicks WHERE n < 3")
    assert sorted(cells.user_ns["few"].collect()["n"].to_pylist()) == [1, 2]
    shown = told(cells, "%%stream_sql\nSELECT n FROM few")
    assert "write '%%stream_sql NAME'" in shown
    shown = told(cells, "%%stream_sql nothing\nCREATE TEMPORARY VIEW g AS SELECT n FROM few")
    assert "the cell has no query to run" in shown


def test_explain_shows_the_plan(cells: InteractiveShell) -> None:
    shown = told(cells, "%%stream_sql\nEXPLAIN SELECT n FROM clicks WHERE n > 1")
    assert "filter" in shown
    assert wb.jobs().get("nothing") is None


@pytest.mark.parametrize("line", ["%stream_sql", "%%stream_sql --help\nSELECT 1"])
def test_help_shows_options_and_an_example(cells: InteractiveShell, line: str) -> None:
    shown = told(cells, line)
    assert "--checkpoint-interval" in shown
    assert "GROUP BY origin, window_start, window_end" in shown


def test_an_unknown_option_is_refused_before_the_query_is_planned(cells: InteractiveShell) -> None:
    assert "unknown option '--paralel'" in told(cells, "%%stream_sql x --paralel 2\nSELECT * FROM nowhere")


@pytest.mark.parametrize(
    ("cell", "expected", "not_expected"),
    [
        ("%%stream_sql a\nSELECT * FROM cl", {"clicks"}, {"people", "n"}),
        ("%%stream_sql a\nSELECT * FROM ", {"clicks", "people", "TUMBLE"}, {"n", "SELECT"}),
        ("%%stream_sql a\nSELECT * FROM clicks AS c JOIN people ON c.", {"user", "n", "ts"}, {"who", "window_end"}),
        (
            "%%stream_sql a\nSELECT * FROM TUMBLE(TABLE clicks, DESCRIPTOR(ts), 1) WHERE w",
            {"window_end", "WHERE"},
            {"n"},
        ),
        ("%%stream_sql a --checkp", {"--checkpoint-dir", "--checkpoint-interval"}, {"clicks"}),
        ("print(cl", set(), {"TUMBLE"}),
    ],
)
def test_completion(cells: InteractiveShell, cell: str, expected: set[str], not_expected: set[str]) -> None:
    with provisionalcompleter():
        offered = {item.text for item in cells.Completer.completions(cell, len(cell))}
    assert expected <= offered
    assert not not_expected & offered


def test_the_cell_is_kept_with_its_magic() -> None:
    cell = Cell("totals -p 2", "SELECT 1", magic="stream_sql")
    record = JobRecord("totals", "RUNNING", 1, {}, cell)
    assert JobRecord.from_json(record.to_json()) == record
    assert str(cell) == "%%stream_sql totals -p 2\nSELECT 1"
    assert JobRecord.from_json(record.to_json().replace(b"stream_sql", b"bash")) is None
