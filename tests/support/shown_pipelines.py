"""The pipelines that pages, notebooks and lessons show, collected by running their programs; the jobs do not start."""

from __future__ import annotations

import builtins
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import workbench as wb
from workbench.api.running.pipeline import Pipeline
from workbench.connectors.replay.log import ReplayLog, write_log
from workbench.lessons.building.source import cells_of
from workbench.lessons.course import source_of
from workbench.plan.logical import Node

ROOT = Path(__file__).parents[2]
LESSONS = 12
PAGES = ("README.md", "docs/architectures.md", "docs/gallery.md")
"""Those with programs that run pipelines."""
FLIGHTS = 20_000
FEW = 2_000
"""Records of a source, at most."""


def programs() -> Iterator[tuple[str, list[str]]]:
    """The code of each place, cell by cell; lessons with their exercises solved."""
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        yield page, re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        yield notebook.name, ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for number in range(1, LESSONS + 1):
        cells = [cell.solved for cell in cells_of(source_of(f"{number:02}")) if cell.kind == "code"]
        yield f"lesson {number}", cells


def pipelines(flights: Path, folder: Path) -> dict[str, Pipeline]:
    """Each pipeline once, by its place and number, without those into which `wb.compare` has built faults.

    Args:
        flights: their log.
        folder: for a log of some of them.
    """
    log = ReplayLog.open(flights)
    some = pq.read_table(flights / next(iter(log.manifest.files)).name).slice(0, FLIGHTS)
    history = wb.History.open(
        write_log(some, folder / "some.log", event_time="departed", arrival_time="landed", channels=2).path
    )
    found: dict[str, Pipeline] = {}
    known: set[str] = set()
    with pytest.MonkeyPatch.context() as patch:
        _unpaced(patch)
        patch.setattr("workbench.datasets.flights_history", lambda *given, **more: history)
        for place, cells in programs():
            here: list[Pipeline] = []

            def kept(self: Pipeline, *given: Any, here: list[Pipeline] = here, **settings: Any) -> Any:
                if all(node.spec.kind != "faults" for node in self.logical_graph().nodes):
                    here.append(self)
                return MagicMock()

            patch.setattr(Pipeline, "run", kept)
            _run(cells)
            for number, pipeline in enumerate(here):
                if (said := f"{place} {pipeline.explain(engine='spark')!r}") not in known:
                    known.add(said)
                    found[f"{Path(place).stem}-{number}".replace(" ", "-")] = pipeline
    return found


def _run(cells: Sequence[str]) -> None:
    names: dict[str, Any] = {"get_ipython": MagicMock(), "__builtins__": builtins}
    for cell in cells:
        lines = cell.splitlines()
        if lines and lines[0].startswith("%%stream"):
            lines = ["_shown = (", *lines[1:], ")", "_shown.sink_to(wb.TableSink('shown')).run()"]
        code = "\n".join(line for line in lines if not line.startswith("%"))
        with redirect_stdout(io.StringIO()), suppress(Exception):  # what looks at results finds none
            exec(code, names)


def _unpaced(patch: pytest.MonkeyPatch) -> None:
    """Sources read as fast as they can, and tables have few rows."""
    for method, setting, value in (
        ("from_table", "rate", None),
        ("from_files", "rate", None),
        ("from_generator", "rate", None),
        ("replay", "speed", "max"),
    ):
        made = getattr(wb.Stream, method)

        def unpaced(
            first: Any, *given: Any, made: Any = made, paced: tuple[str, object] = (setting, value), **more: Any
        ) -> Any:
            few = first.slice(0, FEW) if isinstance(first, pa.Table) else first
            if made.__name__ == "from_generator":
                more["limit"] = min(more.get("limit") or FEW, FEW)
            return made(few, *given, **{**more, paced[0]: paced[1]})

        patch.setattr(wb.Stream, method, staticmethod(unpaced))


def in_one(pipelines: Mapping[str, Pipeline]) -> Pipeline:
    """All of them, each sink as a table of its own, without uids that some have twice.

    What is made for one subtask, as an order of records across the splits of a source demands, keeps it.
    """
    known: dict[Node, Node] = {}

    def plain(node: Node) -> Node:
        if node not in known:
            inputs = tuple(replace(each, node=plain(each.node)) for each in node.inputs)
            one = 1 if node.parallelism == 1 else None
            known[node] = replace(node, inputs=inputs, uid=None, parallelism=one, slot_sharing_group=None)
        return known[node]

    sinks = []
    for name, pipeline in pipelines.items():
        for number, sink in enumerate(pipeline._sinks):
            key = getattr(sink.spec, "upsert_key", None) or ()
            sinks.append(replace(plain(sink), spec=wb.TableSink(f"{name}-{number}", upsert_key=key)))
    return Pipeline(tuple(sinks))
