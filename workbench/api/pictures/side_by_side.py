"""Jobs of one pipeline side by side: how each differs from the first, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.telemetry.frames import Frame, end_latency

NOTABLE = 1.25
"""Two figures are reported if one is at least this many times the other: smaller differences are noise."""

FIGURES = ("p50", "p99", "records per second", "buffers per second", "checkpoint")
"""What is compared."""


def figures(frame: Frame) -> dict[str, float | None]:
    """What one job is compared by: latency and the last checkpoint in milliseconds, records read and buffers sent per
    second; None where it is not known yet."""
    end = end_latency([vertex.id for vertex in frame.vertices], frame.edges, frame.latency)
    sent = [vertex.metrics.get("numBuffersOutPerSecond") for vertex in frame.vertices]
    done = [one.duration_ms for one in frame.checkpoints if one.state == "COMPLETED"]
    rate = frame.metrics.get("numRecordsInPerSecond")
    return {
        "p50": None if end is None else end.p50_ms,
        "p99": None if end is None else end.p99_ms,
        "records per second": None if rate is None else float(rate),
        "buffers per second": sum(float(one or 0) for one in sent),
        "checkpoint": done[-1] if done else None,
    }


def settings_that_differ(frames: Sequence[Frame]) -> list[str]:
    """The names of the settings that are not the same in all of them."""
    names = dict.fromkeys(name for frame in frames for name in frame.settings)
    return [name for name in names if len({str(frame.settings.get(name)) for frame in frames}) > 1]


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
    told = [_told(name, mine, theirs) for name in FIGURES if _differ(mine := own[name], theirs := base[name])]
    if state != "RUNNING":
        told.insert(0, state)
    if not told:
        return f"{lane}: no notable difference from {first}"
    return f"{lane}: {'; '.join(told)}"


def _differ(own: float | None, base: float | None) -> bool:
    if own is None or base is None:
        return False
    low, high = sorted((own, base))
    return high > 0 and (low <= 0 or high / low >= NOTABLE)


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
