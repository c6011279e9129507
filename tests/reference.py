"""Writes ``docs/reference.md``: every public name with the first sentence of its docstring.

``make reference`` writes it; `test_reference.py` says when it no longer tells the truth.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import workbench as wb

PAGE = Path(__file__).parents[1] / "docs" / "reference.md"
HEAD = """# API reference

Every public name, with the first sentence of its docstring; `help(wb.Stream.filter)`, or `wb.Stream.filter?` in a
notebook, shows arguments, units, errors, the source of the idea and an example. `make reference` writes this page.

"""
GROUPS: dict[str, tuple[str, ...]] = {
    "Streams": ("Stream", "KeyedStream", "WindowedStream", "ConnectedStreams"),
    "Histories": ("History",),
    "Columns and expressions": ("col", "lit", "expr", "when", "coalesce"),
    "Aggregates": ("count", "sum", "min", "max", "mean", "median", "top_k", "collect"),
    "Windows": (
        *("tumbling", "sliding", "session", "count_tumbling", "count_sliding", "global_window"),
        *("Window", "WindowAssigner"),
    ),
    "When windows fire, and what they keep": (
        *("on_event_time", "on_processing_time", "on_count", "early", "purging", "Trigger", "TriggerContext", "Action"),
        *("keep_last", "keep_since", "Evictor"),
    ),
    "Event time": ("INGESTION", "monotonous", "punctuated", "WatermarkGenerator"),
    "Functions with state": (
        *("ProcessFunction", "ProcessContext", "CoProcessFunction", "ConnectedContext", "State"),
        *("ValueState", "ListState", "MapState", "ReducingState", "AggregatingState", "BroadcastState"),
    ),
    "Sinks": ("TableSink", "ParquetSink", "FileSink", "SqlSink", "CallbackSink", "PrintSink", "DiscardSink"),
    "Jobs": ("Pipeline", "Job", "job", "jobs", "found_jobs", "FoundJob", "compare", "serve", "SETTINGS"),
    "What is kept of jobs": ("savepoints", "delete_savepoint", "Snapshot", "Recording"),
    "Fault-tolerance policies": ("FaultTolerance", "register_fault_tolerance"),
    "Restart strategies": ("fixed_delay", "exponential_delay", "failure_rate", "no_restart"),
    "Errors": (
        *("WorkbenchError", "SettingError", "ExpressionError", "PlanError", "HistoryError", "SourceError"),
        *("RecordError", "SinkError", "JobError", "CheckpointError", "CorruptCheckpointError"),
    ),
}
SAID = {"SETTINGS": "The names of what can be tuned while a job runs: the arguments of `Job.tune`."}
"""Of values, which have no docstring of their own."""


def page() -> str:
    """The text of the page."""
    return HEAD + "\n".join(f"## {title}\n\n{_table(names)}" for title, names in GROUPS.items())


def _table(names: tuple[str, ...]) -> str:
    rows = ["| name | what it is |", "|---|---|"]
    for name in names:
        value = getattr(wb, name)
        rows.append(f"| `wb.{name}` | {SAID.get(name) or first_sentence(value)} |")
        if inspect.isclass(value):
            rows += [f"| &emsp;`.{method}` | {first_sentence(what)} |" for method, what in _methods(value)]
    return "\n".join(rows) + "\n"


def _methods(kind: type) -> list[tuple[str, Any]]:
    """Its own public methods and properties, in the order in which they are written."""
    if issubclass(kind, wb.WorkbenchError):
        return []
    found = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("workbench"):
            found |= {name: what for name, what in vars(base).items() if not name.startswith("_") and _documented(what)}
    return list(found.items())


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
