"""A user's own pipeline in the simulation: what it gives without a failure is what it must give with any."""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path
from random import Random
from traceback import walk_tb
from typing import Any

from workbench.api.pipeline import Pipeline
from workbench.api.stream import Stream
from workbench.connectors.table_sink import TableSink
from workbench.drivers.faults import FaultPlan
from workbench.errors import SettingError, WorkbenchError
from workbench.origin import Origin, line_text
from workbench.runtime.settings import Settings
from workbench.testing.comparing import Outputs
from workbench.testing.scenario import DrawTrial, Scenario
from workbench.testing.simulation import run_scenario
from workbench.testing.topologies import Trial

NAMES = ("stream", "pipeline")
_RESULT = "result"


def load_pipeline(path: Path) -> Pipeline:
    """The pipeline that a Python file defines: a variable or function ``stream`` or ``pipeline``.

    Raises:
        SettingError: the file does not exist, raises an error or defines none, or a sink is something else than a
            TableSink.
    """
    if not path.is_file():
        raise SettingError(f"there is no file {str(path)!r}: name a Python file that defines 'stream'")
    try:
        values = runpy.run_path(str(path))
        found: Any = next((values[name] for name in NAMES if name in values), None)
        if callable(found):
            found = found()
    except WorkbenchError:
        raise  # a sentence already
    except Exception as error:
        what = error.msg if isinstance(error, SyntaxError) else error
        raise SettingError(
            f"{path} cannot be run, it raises {type(error).__name__}: {what}; mend it", origin=_origin(error, path)
        ) from error
    if isinstance(found, Stream):
        found = found.sink_to(TableSink(_RESULT))
    if not isinstance(found, Pipeline):
        raise SettingError(
            f"{path} defines no pipeline: give a stream, what sink_to returns, or a function that returns one,"
            " the name 'stream'"
        )
    for node in found.logical_graph().nodes:
        if node.role == "sink" and not isinstance(node.spec, TableSink):
            raise SettingError(
                f"a simulation runs the pipeline of {path} many times, and would write to {node.spec.describe()!r} each"
                " time: leave the sink away, or use wb.TableSink"
            )
    return found


def _origin(error: Exception, path: Path) -> Origin | None:
    """Where in the user's files an error came from: the line that does not parse, or the last one of `path`."""
    if isinstance(error, SyntaxError) and error.filename is not None and error.lineno is not None:
        return Origin(error.filename, error.lineno, line_text(error.filename, error.lineno))
    lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == str(path)]
    return Origin(str(path), lines[-1], line_text(str(path), lines[-1])) if lines else None


def trial_of(pipeline: Pipeline) -> DrawTrial:
    """Draws trials of a pipeline; runs it once, undisturbed, to know what it gives.

    Results must not depend on the order in which records of different channels meet, and so no record may be late.

    Raises:
        SettingError: the pipeline does not end, or fails by itself.
    """
    expected: Outputs = {}

    def remember(outputs: Outputs) -> list[str]:
        expected.update(outputs)
        return []

    def undisturbed(chance: Random, folder: Path) -> Trial:
        return Trial(pipeline, remember, parallelisms=(1,), on_time=False)

    calm = Scenario(
        0,
        {"undisturbed": undisturbed},
        faults=FaultPlan(),
        actions=(),
        settings=Settings(checkpoint_interval_us=None, buffer_timeout_us=0),
        durable=False,
    )
    result = run_scenario(calm)
    if not result.ok:
        raise SettingError(f"the pipeline cannot be simulated, undisturbed it does not come to its end: {result}")
    upserts = tuple(
        node.spec.name
        for node in pipeline.logical_graph().nodes
        if isinstance(node.spec, TableSink) and node.spec.upsert
    )

    def compare(outputs: Outputs) -> list[str]:
        problems = []
        for sink, rows in sorted(expected.items()):
            found = outputs.get(sink, Counter())
            if found != rows:
                problems.append(
                    f"{sink}: {(rows - found).total()} rows of the undisturbed run are missing and"
                    f" {(found - rows).total()} are too many, such as"
                    f" {min((rows - found) or (found - rows), key=repr)}"
                )
        return problems

    def draw(chance: Random, folder: Path) -> Trial:
        return Trial(pipeline, compare, on_time=False, upserts=upserts)

    return draw
