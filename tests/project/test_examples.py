"""The examples in docstrings run, and every public name has one, except the names listed here."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from reference import exported

import workbench as wb
from workbench.api.job.faults import Faults
from workbench.api.job.stepper import Stepper

ROOT = Path(__file__).parents[2]
CLASSES = (
    wb.Stream,
    wb.types.KeyedStream,
    wb.types.WindowedStream,
    wb.types.ConnectedStreams,
    wb.types.Job,
    wb.types.Pipeline,
    Faults,
    Stepper,
)
AT_HAND = {"wb": wb, "pa": pa, "col": wb.col, "expr": wb.expr}
"""What an example may use without importing it, as in a notebook."""

NEEDS_MORE = {
    "workbench.connectors.replay.cursor",  # a log that is there
    "workbench.connectors.replay.log",
    "workbench.spark.history",
    "workbench.spark.session",
    "workbench.telemetry.reached",  # a frame of a running job
}
"""Modules with examples that show calls and are not run: they need files or a Spark session."""

WITHOUT_EXAMPLE = {
    # constants
    *("INGESTION", "SETTINGS"),
    # the error says what to do, and each has its base's example
    *("CheckpointError", "CorruptCheckpointError", "ExpressionError", "HistoryError", "JobError", "PlanError"),
    *("MissingPackageError", "QueryError", "RecordError", "SettingError", "SinkError", "SourceError"),
    # made by the runtime, and shown where a function gets them: ProcessFunction, CoProcessFunction, Trigger
    *("ConnectedContext", "ProcessContext", "State", "TriggerContext"),
    # shown as a sketch, because it needs what no test has at hand: files, a server
    *(
        "KafkaSink",
        "MqttSource",
        "NatsSource",
        "NatsSink",
        "RedisLookup",
        "SqlLookup",
        "ServerEventSource",
        "SqlSource",
        "PostgresLogSource",
        "WebSocketSource",
        "KafkaSource",
        "RedisSink",
        "RedisSource",
        "Stream.from_files",
        "Stream.from_socket",
        "Stream.hybrid",
    ),
    "Job.dashboard",  # needs a browser
    *("Job.live", "Job.restore", "Job.savepoints", "Job.seek"),  # Job.savepoint shows two; seeking needs a history
    "Job.recorder",  # what it records is shown by `Job.recording`
}


def modules() -> Iterator[str]:
    """Names of the modules with examples."""
    for found in pkgutil.walk_packages(wb.__path__, "workbench."):
        if found.name.endswith("__main__") or found.name in NEEDS_MORE:
            continue
        path = ROOT.joinpath(*found.name.split("."))
        source = path / "__init__.py" if found.ispkg else path.with_suffix(".py")
        if source.exists() and ">>>" in source.read_text(encoding="utf-8"):  # an extension module has no source
            yield found.name


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(modules()))
def test_the_examples_of_a_module_are_right(name: str) -> None:
    module: ModuleType = importlib.import_module(name)
    result = doctest.testmod(
        module,
        extraglobs={key: value for key, value in AT_HAND.items() if key not in vars(module)},
        optionflags=doctest.ELLIPSIS,
    )
    assert result.failed == 0
    assert result.attempted > 0


def public() -> dict[str, Any]:
    """Everything that is exported, and the methods and properties of the fluent classes, by the name people write."""
    found = {name.rpartition(".")[2]: value for name, value in exported().items()}
    for owner in CLASSES:
        for name, member in inspect.getmembers(owner):
            if not name.startswith("_") and (callable(member) or isinstance(member, property)):
                found[f"{owner.__name__}.{name}"] = member
    return found


def has_docstring(value: Any) -> bool:
    return not (callable(value) or isinstance(value, property)) or bool(inspect.getdoc(value))


def test_every_public_name_has_a_docstring() -> None:
    assert [name for name, value in public().items() if not has_docstring(value)] == []


def test_every_public_name_has_an_example_or_none_by_design() -> None:
    docs = "\n".join(inspect.getdoc(owner) or "" for owner in (wb.types.Job, Faults, Stepper))
    shown = {
        f"{owner.__name__}.{name}"
        for owner, prefix in ((wb.types.Job, "job"), (Faults, r"job\.faults"), (Stepper, r"job\.stepper"))
        for name in re.findall(rf"{prefix}\.(\w+)", docs)
    }
    lacking = {
        name
        for name, value in public().items()
        if ">>>" not in (inspect.getdoc(value) or "") and name not in shown  # the verbs are shown together
    }
    assert lacking == WITHOUT_EXAMPLE


def test_a_wrong_example_is_found() -> None:
    def wrong() -> None:
        """>>> 1 + 1
        3
        """

    failures: list[str] = []
    example = doctest.DocTestFinder().find(wrong, "wrong")[0]
    out: Callable[[str], Any] = failures.append
    assert doctest.DocTestRunner().run(example, out=out).failed == 1
    assert "Expected" in "".join(failures)


CONCEPTS = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")


def test_the_files_that_the_concepts_name_exist() -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", CONCEPTS))
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).is_file() and not (ROOT / "workbench" / name).is_file()] == []


def test_the_tests_that_the_concepts_name_exist() -> None:
    named = set(re.findall(r"`(test_\w+)`", CONCEPTS))
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(named) > 10
    assert [name for name in named if f"def {name}(" not in sources] == []


def test_the_public_names_that_the_concepts_name_exist() -> None:
    named = set(re.findall(r"wb\.((?:[a-z]+\.|Stream\.)?\w+)", CONCEPTS))
    assert len(named) > 10
    assert sorted(named - public().keys() - exported().keys()) == []
