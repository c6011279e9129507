"""The pipelines of README, docs, notebooks and lessons have the same rows on Spark and in the kernel, in one query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pipelines.expected import counted
from shown_pipelines import in_one, pipelines

from workbench.spark.session import session as spark_session

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]
AT_LAST = {"gallery-3-0"}
"""How often late records emit a window again depends on when they are read, so the last row of each is compared."""
BY_CLOCK = {"lesson-2-0-0", "lesson-2-11-0", "lesson-12-2-1"}
"""Their rows tell how old records are by the clock, so they are counted."""
BY_ORDER = {"lesson-9-0-0", "lesson-9-1-0", "lesson-9-3-0", "lesson-9-5-0", "lesson-9-10-0"}
"""Running sums of a key depend on the order in which channels are read, so the last ones are compared."""
NOT_COMPARED = {
    "lesson-4-1-0": "which records are late depends on how many are read at a time",
    "lesson-4-7-0": "which records are late depends on how many are read at a time",
    "lesson-7-5-0": "it tells of records that overtake each other, which they do in two subtasks",
}
REFUSED: dict[str, str] = {}
"""Those that Spark cannot run, and why: none."""
EMPTY = {"gallery-3-1", "lesson-7-5-0", "lesson-10-0-0"}
"""Nothing is too late, nobody raises an alarm, and nothing matches."""


def shown(rows: pa.Table, name: str) -> Any:
    if name in NOT_COMPARED:
        return None
    if name in BY_CLOCK:
        return len(rows)
    if name in BY_ORDER:
        return len(rows), counted(rows.group_by("shop").aggregate([("revenue", "max")]))
    if name in AT_LAST:
        return {row["window_start"]: row for row in rows.to_pylist()}
    return counted(rows)


def test_what_readme_docs_notebooks_and_lessons_show_is_the_same_on_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flights_log: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    found = pipelines(flights_log, tmp_path)
    assert len(found) == 85
    refused = {
        name: each.reason
        for name, pipeline in found.items()
        for each in pipeline.explain(engine="spark").operators
        if each.tier == "refused"
    }
    assert refused == REFUSED
    whole = in_one({name: pipeline for name, pipeline in found.items() if name not in refused})
    here = whole.run("shown-here", parallelism=1)
    there = whole.run("shown-there", engine="spark", spark=spark_session())
    assert here.wait("120s") == "FINISHED"
    assert there.wait("400s") == "FINISHED"
    tables = [sink.spec.name for sink in whole._sinks]
    differ = [name for name in tables if shown(here.table(name), name) != shown(there.table(name), name)]
    assert differ == []
    assert {name for name in tables if not len(here.table(name))} == EMPTY
