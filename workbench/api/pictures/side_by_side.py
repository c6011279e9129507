"""Jobs of one pipeline side by side: which is best and why, and how each differs from the first, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median, mode

from workbench.telemetry.frames import Frame, end_latency

NOTABLE, NOTABLE_MS, SLOW_MS = 1.25, 1.0, 20.0
"""Two figures are reported if one is at least this many times the other, and spans if they are this far apart: smaller
differences are noise. Checkpoints are slow only if they take this long."""
BETTER = 1.5
"""A lane is better if a figure is at least this many times that of another lane."""
SEVERAL = 5
"""The last checkpoints that count: the duration of a single one varies."""
YOUNG_US = 3_000_000
"""Figures of a younger job are those of its start."""

FIGURES = ("p50", "p99", "records per second", "buffers per second", "checkpoint")
"""What is compared."""

RANKED = {
    "records per second": "Highest throughput",
    "p50": "Lowest latency",
    "checkpoint": "Fastest checkpoints",
    "buffers per second": "Fewest buffers",
}
"""By what the best lane is found: the first of these figures in which lanes differ. Only of records, more is better."""
THROUGHPUT = next(iter(RANKED))
LOADS = {"rate", "speed"}
"""With one of these, lanes differ in the work that they are given, and throughput says nothing."""
FEW_SETTINGS = 3
"""So many settings that differ are named; of more, none tells why."""
_PRICE = "checkpoint_interval"
"""The effect that tells what checkpoints cost."""


def figures(frame: Frame) -> dict[str, float | None]:
    """What one job is compared by: latency and the duration of the last checkpoints in milliseconds, records read and
    buffers sent per second; None where it is not known yet."""
    end = end_latency([vertex.id for vertex in frame.vertices], frame.edges, frame.latency)
    sent = [vertex.metrics.get("numBuffersOutPerSecond") for vertex in frame.vertices]
    done = [one.duration_ms for one in frame.checkpoints if one.state == "COMPLETED"]
    rate = frame.metrics.get("numRecordsInPerSecond")
    return {
        "p50": None if end is None else end.p50_ms,
        "p99": None if end is None else end.p99_ms,
        "records per second": None if rate is None else float(rate),
        "buffers per second": sum(float(one or 0) for one in sent),
        "checkpoint": median(done[-SEVERAL:]) if done else None,
    }


def settings_that_differ(frames: Sequence[Frame]) -> list[str]:
    """The names of the settings that are not the same in all of them."""
    names = dict.fromkeys(name for frame in frames for name in frame.settings)
    return [name for name in names if len({str(frame.settings.get(name)) for frame in frames}) > 1]


def set_to(name: str, frame: Frame) -> str:
    """A setting of one lane as people write it, such as ``"buffer_timeout 5ms"``."""
    value = frame.settings.get(name)
    return f"{name} {'off' if value is None else value}"


def verdict(frames: Mapping[str, Frame]) -> str:
    """Which lane is best and in what, with that figure and its price in every lane, the best one first; or why there is
    no such lane.

    Args:
        frames: the newest of each lane, by its name.
    """
    if len(frames) < 2:
        return ""
    halted = {lane: halt for lane, frame in frames.items() if (halt := _halt(frame))}
    if halted:
        return f"No comparison now: {', '.join(f'{lane} is {halt}' for lane, halt in halted.items())}."
    if any(frame.time_us - frame.started_us < YOUNG_US for frame in frames.values()):
        return "No comparison yet: the jobs have just started."
    differ = settings_that_differ(list(frames.values()))
    measured = {lane: figures(frame) for lane, frame in frames.items()}
    ranked = [name for name in RANKED if name not in _beside(differ)]
    merit = next((name for name in ranked if _spreads(name, measured)), None)
    if merit is None:
        told = "No lane is notably better: latency, throughput and buffers are alike."
    else:
        told = _ranking(merit, measured, _named(frames, differ), [name for name in ranked if name != merit])
        same = merit != THROUGHPUT and THROUGHPUT in ranked and not _spreads(THROUGHPUT, measured, NOTABLE)
        told += " The throughput is the same." * same
    return told


def _halt(frame: Frame) -> str:
    """Why the figures of a lane say nothing about its settings now; empty if they do."""
    if frame.state != "RUNNING":
        return frame.state
    if frame.paused:
        return "paused"
    lasts = frame.interruptions and frame.interruptions[-1].state == "lasts"
    return "catching up" if lasts else ""


def _named(frames: Mapping[str, Frame], differ: Sequence[str]) -> dict[str, str]:
    """Each lane with the settings that it does not share with most lanes."""
    values = {name: [str(frame.settings.get(name)) for frame in frames.values()] for name in differ}
    usual = {name: value for name, all_ in values.items() if all_.count(value := mode(all_)) > 1}
    own = {
        lane: [set_to(name, frame) for name in differ if str(frame.settings.get(name)) != usual.get(name)]
        for lane, frame in frames.items()
    }
    if max(map(len, own.values())) > FEW_SETTINGS:
        return {lane: lane for lane in frames}
    return {lane: f"{lane} ({', '.join(settings)})" if settings else lane for lane, settings in own.items()}


def _beside(differ: Sequence[str]) -> set[str]:
    """The figures that do not speak for or against these settings."""
    found: set[str] = set() if any("checkpoint" in name for name in differ) else {"checkpoint"}
    return found if LOADS.isdisjoint(differ) else {*found, THROUGHPUT}


def _ranking(
    merit: str, measured: Mapping[str, Mapping[str, float | None]], names: Mapping[str, str], others: Sequence[str]
) -> str:
    """The lanes in the order of a figure, and in which of the others the best one is worse than the last one."""
    known = {lane: value for lane, own in measured.items() if (value := own[merit]) is not None}
    order = sorted(known, key=lambda lane: known[lane], reverse=merit == THROUGHPUT)
    best, last = order[0], order[-1]
    price = [name for name in others if _is_worse(name, measured[best], measured[last])]
    order += [lane for lane in measured if lane not in known]
    told = "; ".join(f"{names[lane]} has {_written((merit, *price), measured[lane])}" for lane in order)
    if not price:
        return f"{RANKED[merit]}: {told}."
    costs = ", ".join(_told(name, measured[best][name], measured[last][name]) for name in price)
    return f"{RANKED[merit]}: {told}. The price of {best}, compared with {last}: {costs}."


def checkpointing(frames: Mapping[str, Frame]) -> list[str]:
    """For each lane what its checkpoints cost and save, where lanes take them differently.

    Args:
        frames: the newest of each lane, by its name.
    """
    differ = settings_that_differ(list(frames.values()))
    if {"checkpoint_interval", "checkpoint_mode"}.isdisjoint(differ):
        return []
    told = []
    for lane, frame in frames.items():
        interval, price = frame.settings.get("checkpoint_interval"), frame.effects.get(_PRICE)
        facts = [f"taking a checkpoint {price}"] if price else []
        if "checkpoint_interval" in differ and interval not in (None, "disabled"):
            facts.append(f"a failure repeats at most {interval} of records")
        if facts:
            told.append(f"{lane}: {'; '.join(facts)}")
    return told


def differences(frames: Mapping[str, Frame]) -> list[str]:
    """One sentence for each lane but the first: what it does differently from that.

    Args:
        frames: the newest of each lane, by its name.

    Example:
        >>> differences({})
        []
    """
    if not frames:
        return []
    first, *others = frames
    base = figures(frames[first])
    return [_sentence(lane, first, base, figures(frames[lane]), frames[lane].state) for lane in others]


def _sentence(
    lane: str, first: str, base: Mapping[str, float | None], own: Mapping[str, float | None], state: str
) -> str:
    told = [_told(name, mine, theirs) for name in FIGURES if _differ(name, mine := own[name], theirs := base[name])]
    if state != "RUNNING":
        told.insert(0, state)
    if not told:
        return f"{lane}: no notable difference from {first}"
    return f"{lane}: {'; '.join(told)}"


def _differ(name: str, own: float | None, base: float | None, times: float = NOTABLE) -> bool:
    if own is None or base is None:
        return False
    low, high = sorted((own, base))
    if not name.endswith("per second") and high - low < (SLOW_MS if name == "checkpoint" else NOTABLE_MS):
        return False
    return high > 0 and (low <= 0 or high / low >= times)


def _spreads(name: str, measured: Mapping[str, Mapping[str, float | None]], times: float = BETTER) -> bool:
    known = [value for own in measured.values() if (value := own[name]) is not None]
    return bool(known) and _differ(name, min(known), max(known), times)


def _is_worse(name: str, own: Mapping[str, float | None], other: Mapping[str, float | None]) -> bool:
    mine, theirs = own[name], other[name]
    if mine is None or theirs is None or not _differ(name, mine, theirs, BETTER):
        return False
    return mine < theirs if name == THROUGHPUT else mine > theirs


def _written(names: Sequence[str], own: Mapping[str, float | None]) -> str:
    """These figures of one lane."""
    told = []
    for name in names:
        value, what = own[name], name.removesuffix(" per second")
        if value is None:
            told.append(f"{name} not known")
        else:
            told.append(f"{name} {_ms(value)}" if what == name else f"{_short(value)} {what}/s")
    return ", ".join(told)


def _told(name: str, own: float | None, base: float | None) -> str:
    assert own is not None and base is not None  # noqa: PT018 - both were compared
    if name.endswith("per second"):
        what = name.removesuffix(" per second")
        if not own or not base:
            return f"{_short(own)} {what} per second instead of {_short(base)}"
        return f"{_times(own / base)} {what}" if own > base else f"{_times(base / own)} fewer {what}"
    return f"{name} {_ms(own)} instead of {_ms(base)}"


def _times(ratio: float) -> str:
    return f"{_short(ratio)}x"


def _ms(value: float) -> str:
    return f"{value:.1f} ms" if value < 9.95 else f"{value:,.0f} ms"


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if value < 9.95 else f"{value:,.0f}"
