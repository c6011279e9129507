"""The messages of the wire, version 1, and what a page may send.

A page opens its comms with `open` and with `see`, which says which sections it wants, and how often. A kernel sends
`hello` once, and again when its list of jobs is another; then frames, whose sections are whole or patches of the frame
before; and a reply to each `act`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args

from workbench.errors import WorkbenchError, unknown
from workbench.from_json import made

VERSION = 1
EVERY_JOB = "*"
FRAME_MAX = 8 * 2**20
"""The longest frame that a page reads, in characters of its JSON."""

Sections = Literal["head"]
"""The sections of a frame."""
Made = TypeVar("Made")


class WireError(WorkbenchError):
    """A message that this side of the wire does not understand."""


@dataclass(frozen=True, slots=True)
class View:
    """A view that each job has: its name, its title, and what it shows in one sentence."""

    name: str
    title: str
    help: str


@dataclass(frozen=True, slots=True)
class Choices:
    """A setting of a running job that has usual values."""

    name: str
    title: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hello:
    """What a kernel tells of itself.

    Attributes:
        jobs: their names, in the order of their start.
        docks: those whose cell asks for a dashboard beside the notebook.
        views: in the order of menus.
        settings: with usual values.
    """

    jobs: tuple[str, ...]
    docks: tuple[str, ...]
    views: tuple[View, ...]
    settings: tuple[Choices, ...]


@dataclass(frozen=True, slots=True)
class Open:
    """What a page tells of itself when it opens the comm on which it acts.

    Attributes:
        docks: whether it docks dashboards beside notebooks.
    """

    docks: bool


@dataclass(frozen=True, slots=True)
class See:
    """What a page wants to see.

    Attributes:
        sections: by job (or `EVERY_JOB`) and section: the least time between two frames, in milliseconds.
        comm: the id of the comm on which it sees; empty: the one that this message opens.
    """

    sections: Mapping[str, Mapping[Sections, int]]
    comm: str = ""


@dataclass(frozen=True, slots=True)
class Act:
    """What a page asks a job to do.

    Attributes:
        id: chosen by the page; the reply repeats it.
        name: one of `ACTS`.
        job: its name.
        args: of the act.
    """

    id: str
    name: str
    job: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to an act.

    Attributes:
        id: of the act.
        ok: whether it is done.
        text: what went wrong, in one sentence for the user.
        data: of the act ``hello``.
    """

    id: str
    ok: bool
    text: str
    data: Hello | None


ACTS: Mapping[str, tuple[str, ...]] = {
    "hello": (),
    "tune": ("settings",),
    "pause": (),
    "resume": (),
    "checkpoint": (),
    "savepoint": ("name",),
    "stop": (),
    "fail": ("task",),
}
"""What can be asked, with its arguments; all but ``hello`` of a job."""


def message(kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """A message of the kernel."""
    return {"v": VERSION, "type": kind, **content}


def open_of(found: object) -> Open:
    """What a page tells of itself.

    Raises:
        WireError: another version, or another form.

    Example:
        >>> open_of({"v": 1, "type": "open", "docks": True})
        Open(docks=True)
    """
    return _made(Open, _content(found, "open"))


def see_of(found: object) -> See:
    """What a page wants to see.

    Raises:
        WireError: another version, another form, or an unknown section.

    Example:
        >>> see_of({"v": 1, "type": "see", "sections": {"*": {"head": 1000}}}).sections
        {'*': {'head': 1000}}
    """
    see = _made(See, _content(found, "see"))
    for section in {name for wanted in see.sections.values() for name in wanted}:
        if section not in get_args(Sections):
            raise WireError(unknown("section", section, get_args(Sections)))
    return see


def act_of(found: object) -> Act:
    """What a page asks for.

    Raises:
        WireError: another version, an unknown act, or an argument that is missing or of another type.

    Example:
        >>> act_of({"v": 1, "type": "act", "id": "7", "name": "pause", "job": "delays"})
        Act(id='7', name='pause', job='delays', args={})
    """
    act = _made(Act, _content(found, "act"))
    if act.name not in ACTS:
        raise WireError(unknown("act", act.name, ACTS))
    if act.name != "hello" and not act.job:
        raise WireError(f"the act {act.name!r} needs the name of a job")
    for name in ACTS[act.name]:
        value = act.args.get(name)
        if name == "settings":
            _check_settings(value)
        elif not isinstance(value, str) or not value:
            raise WireError(f"the act {act.name!r} needs {name!r} as text, not {value!r}")
    return act


def id_of(found: object) -> str:
    """The id to answer to, also if the rest is invalid; empty: there is none."""
    told = found.get("id") if isinstance(found, dict) else None
    return told if isinstance(told, str) else ""


def _content(found: object, kind: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise WireError(f"a message is a JSON object, not {type(found).__name__}")
    if (version := found.get("v")) != VERSION:
        raise WireError(
            f"the page speaks version {version!r} of the workbench's wire, this kernel version {VERSION}: install "
            "matching streaming-workbench and workbench-jupyterlab, then reload the page"
        )
    if (told := found.get("type")) != kind:
        raise WireError(f"a message of type {told!r} came instead of {kind!r}")
    return {name: value for name, value in found.items() if name not in ("v", "type")}


def _made(kind: type[Made], content: object) -> Made:
    try:
        return made(kind, content, "the message")
    except ValueError as error:
        raise WireError(str(error)) from None


def _check_settings(value: object) -> None:
    if not isinstance(value, dict) or not value:
        raise WireError(f"the act 'tune' needs 'settings' as an object such as {{'speed': 'max'}}, not {value!r}")
    for name, setting in value.items():
        if setting is not None and (isinstance(setting, bool) or not isinstance(setting, str | int | float)):
            raise WireError(f"setting {name!r} is {setting!r}: send text, a number or null")
