"""The programs of README and gallery give the same rows on Spark as in the kernel: all of them in one query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pipelines.expected import counted

import workbench as wb
from workbench.api.running.pipeline import Pipeline
from workbench.spark.session import session as spark_session

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]
ROOT = Path(__file__).parents[2]


def programs_of(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def pipelines_in(programs: Sequence[str]) -> list[Pipeline]:
    """What the programs run in the kernel, where they check their own results."""
    found: list[Pipeline] = []
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        run = Pipeline.run

        def kept(self: Pipeline, *given: Any, **settings: Any) -> Any:
            found.append(self)
            return run(self, *given, **settings)

        patch.setattr(Pipeline, "run", kept)
        for program in programs:
            exec(program, names)
    return found


def in_one(pipelines: Sequence[Pipeline]) -> Pipeline:
    """All of them, each sink as a table of its own."""
    sinks = []
    for number, pipeline in enumerate(pipelines):
        for at, node in enumerate(pipeline._sinks):
            key = getattr(node.spec, "upsert_key", ())
            sinks.append(replace(node, spec=wb.TableSink(f"program-{number}-{at}", upsert_key=key)))
    return Pipeline(tuple(sinks))


def shown(rows: pa.Table, *, at_last: bool) -> Any:
    """All rows, or of each window the last one: how often late records emit it again depends on when they are read."""
    return {row["window_start"]: row for row in rows.to_pylist()} if at_last else counted(rows)


def test_the_programs_of_the_gallery_and_of_readme_are_the_same_on_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flights_log: Path
) -> None:
    pipelines = pipelines_in(programs_of("docs/gallery.md"))
    assert len(pipelines) == 10
    [readme] = programs_of("README.md")
    assert 'speed="86400x"' in readme
    names: dict[str, Any] = {}
    at_once = readme.replace("flights_history()", "LOG").replace('speed="86400x"', 'speed="max"')
    exec(at_once.partition("job = ")[0].replace("from workbench.datasets", "#"), {"LOG": flights_log}, names)
    # With lateness the kernel emits a window again for each late record, and none is late here.
    pipelines.append(names["delays"].sink_to(wb.TableSink("delays")))
    tiers = [pipeline.explain(engine="spark").tier for pipeline in pipelines]
    assert (tiers.count("native"), tiers.count("carried"), tiers.count("refused")) == (2, 9, 0)
    whole = in_one(pipelines)
    here = whole.run("programs-here", parallelism=1)
    assert here.wait("120s") == "FINISHED"
    there = whole.run("programs-there", engine="spark", spark=spark_session())
    assert there.wait("300s") == "FINISHED"
    empty = []
    for node in whole._sinks:
        table = node.spec.name
        mine, theirs = (shown(job.table(table), at_last=table == "program-3-0") for job in (here, there))
        assert mine == theirs, table
        empty += [] if len(here.table(table)) else [table]
    assert empty == ["program-3-1"]  # nothing is too late in that program
