"""The pipelines that pages, notebooks and lessons show, collected by running their programs; the jobs do not start."""

from __future__ import annotations

import builtins
import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

import workbench as wb
from workbench.api.running.pipeline import Pipeline
from workbench.lessons.building.source import cells_of
from workbench.lessons.course import source_of

ROOT = Path(__file__).parents[2]
LESSONS = 12
PAGES = ("README.md", "docs/architectures.md", "docs/gallery.md")
"""Those with programs that run pipelines."""


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


def pipelines(log: Path) -> dict[str, Pipeline]:
    """Each pipeline once, by its place and number; sources read as fast as they can.

    Args:
        log: of the flights.
    """
    found: dict[str, Pipeline] = {}
    known: set[str] = set()
    with pytest.MonkeyPatch.context() as patch:
        _unpaced(patch)
        patch.setattr("workbench.datasets.flights_history", lambda *given, **more: wb.History.open(log))
        for place, cells in programs():
            here: list[Pipeline] = []

            def kept(self: Pipeline, *given: Any, here: list[Pipeline] = here, **settings: Any) -> Any:
                here.append(self)
                return MagicMock()

            patch.setattr(Pipeline, "run", kept)
            _run(cells)
            for number, pipeline in enumerate(here):
                if (said := f"{place} {pipeline.explain(engine='spark')!r}") not in known:
                    known.add(said)
                    found[f"{place}, {number}"] = pipeline
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
    for method, setting, value in (
        ("from_table", "rate", None),
        ("from_files", "rate", None),
        ("from_generator", "rate", None),
        ("replay", "speed", "max"),
    ):
        made = getattr(wb.Stream, method)

        def unpaced(*given: Any, made: Any = made, setting: str = setting, value: object = value, **more: Any) -> Any:
            return made(*given, **{name: each for name, each in more.items() if name != setting}, **{setting: value})

        patch.setattr(wb.Stream, method, staticmethod(unpaced))
