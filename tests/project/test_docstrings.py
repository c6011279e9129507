"""Every public name documents its parameters, units, errors and source."""

from __future__ import annotations

import builtins
import inspect
import re
from pathlib import Path

import pytest
from docstring_rules import (
    SOURCE,
    Public,
    members,
    public,
    silent_about_errors,
    undescribed,
    unknown_errors,
    unknown_parameters,
    without_source,
    without_unit,
)
from reference import exported

import workbench as wb
from workbench.api.job.faults import Faults
from workbench.api.job.stepper import Stepper
from workbench.api.pictures.plan_view import PlanView
from workbench.api.pictures.state_view import StateView
from workbench.api.pictures.status import Status, Table

ROOT = Path(__file__).parents[2]

GIVEN = (Faults, Stepper, PlanView, StateView, Status, Table, type(wb.col("n")), type(wb.when("n > 0")))
"""Classes that nobody imports: people get their instances from public methods."""

MADE_FOR_PEOPLE = {
    *(
        "ConnectedContext",
        "ConnectedStreams",
        "History",
        "Job",
        "KeyedStream",
        "Lesson",
        "Pattern",
        "Pipeline",
        "ProcessContext",
        "State",
    ),
    *("Stream", "TriggerContext", "Window", "WindowedStream", "Action"),
    *(kind.__name__ for kind in GIVEN),
}
"""Classes whose constructors are not for people."""

SEAM = {
    *(
        "check",
        "check_fresh",
        "check_restore",
        "committed",
        "create",
        "describe",
        "for_changes",
        "hold",
        "place",
        "part_format",
    ),  # of sinks: `workbench.connectors.contract.base.Sink`
    *("ask", "observe"),  # of watermark generators: what the runtime calls, and checks, hooks with
}
"""Members by which the runtime uses what people make; they are described where the runtime's side is."""

HOOKS = {
    *("CoProcessFunction.on_timer", "CoProcessFunction.process", "CoProcessFunction.process1"),
    *("CoProcessFunction.process2", "Evictor.keep", "Evictor.keep_in_windows", "ProcessFunction.on_timer"),
    *("ProcessFunction.process", "Trigger.on_event_time", "Trigger.on_merge", "Trigger.on_processing_time"),
    *("Trigger.on_record", "WatermarkGenerator.on_batch", "WatermarkGenerator.on_periodic"),
    *(
        "WatermarkGenerator.restore",
        "WindowAssigner.assign",
        "WindowAssigner.panes",
        "WindowAssigner.reached",
        "WindowAssigner.windows",
    ),
}
"""Methods that people write and the runtime calls."""

RAISES_NOTHING = HOOKS | {
    *("Lesson.curves", "Lesson.times"),  # what they draw is not judged
    "DiscardSink",  # every name will do
    "FoundJob",  # made by `found_jobs`, which raises
    *("Expression.like", "Expression.round"),  # what does not fit is known where the expression is used
    *("collect_list", "count", "max", "mean", "median", "min", "sum"),  # `aggregate` knows the columns
    # whole numbers, kept as they are
    *("TriggerContext.delete_event_timer", "TriggerContext.delete_processing_timer"),
    *("TriggerContext.register_event_timer", "TriggerContext.register_processing_timer"),
}
"""What takes arguments and refuses none."""

WITHOUT_SOURCE = {
    *("INGESTION", "SETTINGS"),  # constants have no docstring of their own
    *(
        "job",
        "jobs",
        "Stepper.driver",
        "Job.live",
        "Job.name",
        "Job.over",
        "Job.pause",
        "Job.report",
        "Job.resume",
        "Job.wait",
    ),
    *("Stream.columns", "Stream.schema"),
}
"""Names that stand for no idea of stream processing."""

PLAIN_DATA = {"Status", "Table"}
"""What shows data, whatever it is."""

CONCEPTUAL = (
    wb.Stream,
    wb.types.KeyedStream,
    wb.types.WindowedStream,
    wb.types.ConnectedStreams,
    wb.types.Pipeline,
    wb.types.Job,
    Faults,
    Stepper,
)
"""Classes of which each method stands for an idea; of the others the class does."""


def names() -> dict[str, Public]:
    """All public names: what is exported, what it gives, and their methods and properties."""
    found: dict[str, Public] = {}
    values = {name.rpartition(".")[2]: value for name, value in exported().items()}
    for name, value in (values | {kind.__name__: kind for kind in GIVEN}).items():
        error = inspect.isclass(value) and issubclass(value, Exception)
        found[name] = public(name, value, called=not error and name not in MADE_FOR_PEOPLE)
        if inspect.isclass(value) and not error:
            for member, of in members(value):
                if member not in SEAM:
                    found[f"{name}.{member}"] = public(f"{name}.{member}", of)
    return found


NAMES = names()


def test_the_names_are_found() -> None:
    assert {"Stream.filter", "Job.savepoint", "tumbling", "Expression.rlike", "ProcessContext.output"} <= NAMES.keys()
    assert len(NAMES) > 200
    assert NAMES["Stream.replay"].parameters[:2] == ("history", "speed")


def test_every_name_has_a_docstring() -> None:
    constants = {name.rpartition(".")[2] for name, value in exported().items() if not callable(value)}
    undocumented = {name for name, of in NAMES.items() if not of.text}
    inherited = {name for name, of in NAMES.items() if of.text and of.text == inspect.getdoc(builtins.object)}
    assert undocumented - constants == set()
    assert inherited == set()


def test_every_parameter_is_described() -> None:
    assert undescribed(NAMES.values()) == []


def test_nothing_else_is_described() -> None:
    assert unknown_parameters(NAMES.values()) == []


def test_what_can_be_tuned_is_described() -> None:
    assert set(NAMES["Job.tune"].section("Args")) == set(wb.SETTINGS)


def test_every_amount_has_its_unit() -> None:
    assert without_unit(NAMES.values()) == []


def test_whatever_can_be_given_something_wrong_says_what_it_raises() -> None:
    assert silent_about_errors(NAMES.values()) == RAISES_NOTHING


def test_the_errors_named_exist() -> None:
    assert unknown_errors(NAMES.values(), lambda name: getattr(wb.errors, name, None)) == []


def test_every_idea_has_its_source() -> None:
    methods = tuple(f"{owner.__name__}." for owner in CONCEPTUAL)
    ideas = [
        of for name, of in NAMES.items() if ("." not in name or name.startswith(methods)) and name not in PLAIN_DATA
    ]
    assert without_source(of for of in ideas if not of.name.endswith("Error")) == WITHOUT_SOURCE


CONCEPTS = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
CITED = re.compile(r"\b(D[1-6]|E(?:[1-9]|10)|F[12]-\d+|I(?:[1-9]|1[0-6]))(?: to (F[12]-\d+|E\d+|D\d))?\b")


def ids(text: str) -> set[str]:
    """The IDs in a text; ``F1-11 to F1-13`` are three."""
    found: set[str] = set()
    for first, last in CITED.findall(text):
        stem, number = re.fullmatch(r"(F\d-|[DEI])(\d+)", first).groups()  # type: ignore[union-attr]
        end = int(last.removeprefix(stem)) if last else int(number)
        found |= {f"{stem}{at}" for at in range(int(number), end + 1)}
    return found


ALL_IDS = {
    *(f"D{n}" for n in range(1, 7)),
    *(f"E{n}" for n in range(1, 11)),
    *(f"F1-{n}" for n in range(1, 14)),
    *(f"F2-{n}" for n in range(1, 17)),
    *(f"I{n}" for n in range(1, 17)),
}


def rows() -> dict[str, list[str]]:
    """The cells of the table of IDs, by ID."""
    found: dict[str, list[str]] = {}
    for line in CONCEPTS.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and ids(cells[0]) and not set(cells[0]) <= {"-", " "}:
            found |= dict.fromkeys(ids(cells[0]), cells[1:])
    return found


def test_every_id_is_explained_once() -> None:
    assert set(rows()) == ALL_IDS


@pytest.mark.parametrize("concept", sorted(ALL_IDS))
def test_an_id_says_what_it_is_where_it_lives_and_what_shows_it(concept: str) -> None:
    meaning, place, shown = rows()[concept]
    assert len(meaning) > 15
    assert place
    assert re.search(
        r"`test_\w+`|`tests/\w+/test_\w+\.py`|`\d\d_\w+\.ipynb`|`workbench \w+|`make \w+`|not yet", shown
    ), shown


def test_every_id_that_is_cited_is_explained() -> None:
    cited: set[str] = set()
    for folder in ("workbench", "tests", "notebooks"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".ipynb") and path.name != Path(__file__).name:
                cited |= ids(path.read_text(encoding="utf-8"))
    assert {"F1-5", "F2-6", "E4"} <= cited
    assert cited - ALL_IDS == set()


# that each rule finds what it is for ---------------------------------------------------------------------------------


def told(text: str, *parameters: str) -> list[Public]:
    return [Public("f", inspect.cleandoc(text), parameters)]


def test_a_parameter_without_description_is_found() -> None:
    text = """Do it.

    Args:
        a, b: two
            numbers.
        c: another.

    Returns:
        d: no parameter.
    """
    assert undescribed(told(text, "a", "b", "c", "d")) == ["f(d)"]
    assert unknown_parameters(told(text, "a", "b")) == ["f(c)"]
    assert told(text)[0].section("Args") == {"a": "two numbers.", "b": "two numbers.", "c": "another."}


def test_an_amount_without_unit_is_found() -> None:
    assert without_unit(told("Wait.\n\nArgs:\n    timeout: how long.", "timeout")) == ["f(timeout)"]
    assert without_unit(told('Wait.\n\nArgs:\n    timeout: such as ``"5s"``.', "timeout")) == []


def test_silence_about_errors_is_found() -> None:
    assert silent_about_errors(told("Do it.", "a")) == {"f"}
    assert silent_about_errors(told("Do it.\n\nRaises:\n    PlanError: always.", "a")) == set()
    assert unknown_errors(told("Do it.\n\nRaises:\n    PlamError: always."), lambda name: None) == ["f: PlamError"]


@pytest.mark.parametrize("text", ["As in F1-5.", "Flink's windows.", "Gray et al., 1997", "I7 holds."])
def test_a_source_is_recognised(text: str) -> None:
    assert SOURCE.search(text)


@pytest.mark.parametrize("text", ["As always.", "F3-1", "F1-14", "D7", "E11", "The 5 of 1997."])
def test_what_is_no_source_is_not(text: str) -> None:
    assert not SOURCE.search(text)
