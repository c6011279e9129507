"""A user's own pipeline in the simulation: its result without a failure must be its result with any failure."""

from __future__ import annotations

import os
import runpy
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from traceback import walk_tb
from typing import Any

from workbench.api.running.pipeline import Pipeline
from workbench.api.streams.stream import Stream
from workbench.connectors.tables.table_sink import TableSink
from workbench.drivers.faults.faults import FaultPlan
from workbench.errors import SettingError, WorkbenchError
from workbench.lab.pipelines.comparing import Outputs
from workbench.lab.pipelines.topologies import Trial
from workbench.lab.pipelines.user_sinks import ROWS, sinks_of
from workbench.lab.simulation.scenario import DrawTrial, Scenario
from workbench.lab.simulation.simulation import run_scenario
from workbench.origin import Origin, line_text
from workbench.runtime.settings.settings import Settings

NAMES = ("stream", "pipeline")
_RESULT = "result"
_HASH_SEED = "PYTHONHASHSEED"


@dataclass(frozen=True)
class UserPipeline:
    """The content of a user's file.

    Attributes:
        path: of the file.
        found: a stream or a pipeline, or a function that takes the folder of a run and returns one.
        rows: takes that folder, too, and returns the rows that the user's own sinks have written; None: there is none.
    """

    path: Path
    found: Any
    rows: Callable[[Path], Any] | None

    def trial(self, folder: Path, verify: Callable[[Outputs], list[str]], **fixed: Any) -> Trial:
        """The trial for a folder.

        Raises:
            SettingError: the file yields no pipeline, or one whose sinks cannot be simulated.
        """
        found = self.found
        if callable(found):
            with _mistakes_told(self.path):
                found = found(folder)
        if isinstance(found, Stream):
            found = found.sink_to(TableSink(_RESULT))
        if not isinstance(found, Pipeline):
            raise SettingError(
                f"{self.path} defines no pipeline: assign a stream, the result of sink_to, or a function that returns "
                "one, to the name 'stream'"
            )
        sinks = sinks_of(found, folder, self.rows, self.path)
        outside = sinks.read if sinks.readers else None
        return Trial(
            found, verify, on_time=False, folders=sinks.folders, outside=outside, upserts=sinks.upserts, **fixed
        )


def load_pipeline(path: Path) -> UserPipeline:
    """The pipeline that a Python file defines: a variable or function ``stream`` or ``pipeline``.

    A function may take the folder of a run, which is new each time, for sinks that write to files and databases.

    Raises:
        SettingError: the file does not exist, raises an error or defines none, or a sink writes elsewhere.
    """
    if not path.is_file():
        raise SettingError(f"there is no file {str(path)!r}: name a Python file that defines 'stream'")
    with _mistakes_told(path):
        values = runpy.run_path(str(path))
        found: Any = next((values[name] for name in NAMES if name in values), None)
        if callable(found) and not signature(found).parameters:
            found = found()
    rows = values.get(ROWS)
    loaded = UserPipeline(path, found, rows if callable(rows) else None)
    with TemporaryDirectory() as folder:
        loaded.trial(Path(folder), lambda outputs: [])  # reports an unusable pipeline before anything runs
    return loaded


@contextmanager
def _mistakes_told(path: Path) -> Iterator[None]:
    """Turn errors in the user's file into a sentence with its line.

    Raises:
        SettingError: it raised something.
    """
    try:
        yield
    except WorkbenchError:
        raise  # already a sentence
    except Exception as error:
        what = error.msg if isinstance(error, SyntaxError) else error
        raise SettingError(
            f"{path} cannot be run, it raises {type(error).__name__}: {what}; fix it", origin=_origin(error, path)
        ) from error


def _origin(error: Exception, path: Path) -> Origin | None:
    """The place of an error in the user's files: the line that does not parse, or the last one of `path`."""
    if isinstance(error, SyntaxError) and error.filename is not None and error.lineno is not None:
        return Origin(error.filename, error.lineno, line_text(error.filename, error.lineno))
    lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == str(path)]
    return Origin(str(path), lines[-1], line_text(str(path), lines[-1])) if lines else None


def undisturbed(user: UserPipeline) -> Outputs:
    """The result of a pipeline without any disturbance.

    Raises:
        SettingError: the pipeline does not end, or fails by itself.
    """
    expected: Outputs = {}

    def remember(outputs: Outputs) -> list[str]:
        expected.update(outputs)
        return []

    calm = Scenario(
        0,
        {"undisturbed": lambda chance, folder: user.trial(folder, remember, parallelisms=(1,))},
        faults=FaultPlan(),
        actions=(),
        settings=Settings(checkpoint_interval_us=None, buffer_timeout_us=0),
        durable=False,
    )
    result = run_scenario(calm)
    if not result.ok:
        raise SettingError(f"the pipeline cannot be simulated, because it does not finish without faults: {result}")
    return expected


def trial_of(user: UserPipeline) -> DrawTrial:
    """Draws trials of a pipeline; runs it once, undisturbed, for the expected rows.

    Results must not depend on the order in which records of different channels arrive, so no record may be late.

    Raises:
        SettingError: the pipeline does not end, or fails by itself.
    """
    expected = undisturbed(user)

    def draw(chance: Random, folder: Path) -> Trial:
        return user.trial(folder, lambda outputs: unlike(expected, outputs))

    return draw


def unlike(expected: Outputs, outputs: Outputs) -> list[str]:
    """How rows differ from those of the undisturbed run, a sentence for each sink."""
    problems = []
    for sink in sorted(expected.keys() | outputs.keys()):
        rows, found = expected.get(sink, Counter()), outputs.get(sink, Counter())
        if found != rows:
            problems.append(
                f"{sink}: {(rows - found).total()} rows of the run without faults are missing and "
                f"{(found - rows).total()} are surplus, such as {min((rows - found) or (found - rows), key=repr)}"
            )
    return problems


def unlike_elsewhere(path: Path) -> list[str]:
    """How rows differ when another process runs a pipeline, undisturbed, as after a kill: there ``hash()`` of a text
    has another value, so that sets have another order; clock and randomness differ anyway.

    Raises:
        SettingError: the file cannot be simulated.
    """
    before = os.environ.get(_HASH_SEED)
    os.environ[_HASH_SEED] = "1" if before == "0" else "0"
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
            found = other.submit(_undisturbed_at, path).result()
    finally:
        if before is None:
            del os.environ[_HASH_SEED]
        else:
            os.environ[_HASH_SEED] = before
    return unlike(_undisturbed_at(path), found)


def _undisturbed_at(path: Path) -> Outputs:
    return undisturbed(load_pipeline(path))
