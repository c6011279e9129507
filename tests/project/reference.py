"""Writes ``docs/reference.md``: every public name with the first sentence of its docstring.

``make reference`` writes it; `test_reference.py` says when it no longer tells the truth.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import workbench as wb
from workbench.api.job.faults import Faults
from workbench.api.job.stepper import Stepper
from workbench.connectors.contract.base import Sink

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"
HEAD = """# API reference

Every public name, with the first sentence of its docstring; `help(wb.Stream.filter)`, or `wb.Stream.filter?` in a
notebook, shows arguments, units, errors, the source of the idea and an example. `make reference` writes this page.

"""
WORDS = {
    "state of a job": "its phase in the life cycle, such as `RUNNING`: `job.state`",
    "state of an operator": "what it keeps for each key: `wb.state` declares it, `job.operator_state(...)` and `%stream"
    " state` query it in a running job, `Snapshot.operator_state(...)` reads it from a savepoint",
    "resume": "continue where it stopped: a paused job by `job.resume()`, the job of an earlier process by"
    " `run(resume=True)`, from its latest checkpoint",
    "restore": "take over the state of a savepoint or checkpoint that is named: `run(restore=...)`, `job.restore(...)`",
    "rescale": "continue at another parallelism: `job.rescale(...)`",
    "rebalance": "distribute records to subtasks in turn: `Stream.rebalance()`",
    "collect": "return the first rows of a stream: `Stream.collect()`",
    "count": "the number of records: `wb.count()`; windows of a number of records are `wb.windows.count_tumbling(...)`",
}
"""The meaning of words that other systems use for several things."""

TITLES = {
    "Streams": ("Stream", "History"),
    "Queries": ("sql", "sql_script"),
    "Patterns": ("pattern",),
    "Columns and expressions": ("col", "lit", "expr", "when", "coalesce"),
    "Aggregates": ("count", "sum", "min", "max", "mean", "median", "top_k", "collect_list", "count_distinct"),
    "Windows": ("tumbling", "sliding", "session"),
    "Further windows, and what they keep": "windows",
    "When windows fire": "triggers",
    "Event time": "watermarks",
    "Functions with state": "functions",
    "What state they declare": "state",
    "Sinks": ("TableSink", "ParquetSink", "FileSink", "SqlSink", "CallbackSink", "PrintSink", "DiscardSink"),
    "Connectors to servers: sources for `Stream.from_source`, and sinks": (
        "KafkaSource",
        "KafkaSink",
        "ServerEventSource",
        "WebSocketSource",
        "MqttSource",
        "NatsSource",
        "NatsSink",
        "RedisSource",
        "SqlSource",
        "PostgresLogSource",
        "RedisSink",
        "SqlLookup",
        "RedisLookup",
    ),
    "Jobs": ("job", "jobs", "found_jobs", "compare", "serve", "SETTINGS"),
    "The course": ("lesson",),
    "Queries of Spark": ("watch",),
    "What is kept of jobs": ("savepoints", "delete_savepoint", "Snapshot", "Recording"),
    "Restart strategies": "restart",
    "Architectures of fault tolerance": (
        "acks",
        "changelog",
        "stop_the_world",
        "at_most_once",
        "transactions",
        "micro_batches",
    ),
    "Fault-tolerance policies": "policies",
    "What methods return": "types",
    "Errors": "errors",
}
"""The names under each title, or the group that they are."""
PARTS = {"Job": (("faults", Faults), ("stepper", Stepper))}
"""Objects that a class is divided into, by the names under which they are reached."""
SAID = {"SETTINGS": "The names of the settings that can be tuned while a job runs: the arguments of `Job.tune`."}
"""Of values, which have no docstring of their own."""


def page() -> str:
    """The text of the page."""
    words = "".join(f"| {word} | {meaning} |\n" for word, meaning in WORDS.items())
    return f"{HEAD}## Words\n\n| word | what it means |\n|---|---|\n{words}\n" + "\n".join(
        f"## {title}\n\n{_table(names)}" for title, names in titles().items()
    )


def titles() -> dict[str, list[str]]:
    """The names under each title, each as people write it, ``windows.keep_last``; none is duplicated."""
    flat = [name for name in exported() if "." not in name]
    return {
        title: list(names)
        if isinstance(names, tuple)
        else [name for name in exported() if name.startswith(f"{names}.") and name.partition(".")[2] not in flat]
        for title, names in TITLES.items()
    }


def exported() -> dict[str, Any]:
    """What is exported, by the name that people write behind ``wb.``, with what is in the groups."""
    found: dict[str, Any] = {}
    for name in wb.__all__:
        value = getattr(wb, name)
        if isinstance(value, ModuleType):
            found |= {f"{name}.{item}": getattr(value, item) for item in value.__all__}
        elif not name.endswith("_ipython_extension"):
            found[name] = value
    return found


def _table(names: list[str]) -> str:
    rows = ["| name | what it is |", "|---|---|"]
    for name in names:
        value = exported()[name]
        rows.append(f"| `wb.{name}` | {SAID.get(name) or first_sentence(value)} |")
        if inspect.isclass(value):
            rows += [f"| &emsp;`.{method}` | {first_sentence(what)} |" for method, what in _methods(value)]
            for part, kind in PARTS.get(name, ()):
                rows += [f"| &emsp;`.{part}.{method}` | {first_sentence(what)} |" for method, what in _methods(kind)]
    return "\n".join(rows) + "\n"


def _methods(kind: type) -> list[tuple[str, Any]]:
    """Its own public methods and properties, in the order in which they are written; of a sink not those by which jobs
    use it."""
    if issubclass(kind, wb.errors.WorkbenchError):
        return []
    found = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("workbench"):
            found |= {name: what for name, what in vars(base).items() if not name.startswith("_") and _documented(what)}
    return [
        item for item in found.items() if not (issubclass(kind, Sink) and inspect.isfunction(vars(Sink).get(item[0])))
    ]


def _documented(what: Any) -> bool:
    plain = getattr(what, "__func__", what)
    return (inspect.isfunction(plain) or isinstance(plain, property)) and bool(inspect.getdoc(plain))


def first_sentence(value: Any) -> str:
    """Of its docstring, fit for a table's cell."""
    text = (inspect.getdoc(getattr(value, "__func__", value)) or "").partition("\n\n")[0].replace("\n", " ")
    sentence = re.split(r"(?<=[a-z0-9`)]\.) (?=[A-Z`])", text)[0]
    return sentence.replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
