"""What lies on the channels of a scene: records as marbles, with barriers, watermarks and what is written at them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import atan2, degrees, hypot

from workbench.durations import format_instant
from workbench.telemetry.scene import ChannelScene, Marble

TYPE = 14
"""The size of all letters, in pixels."""
BOLD = 0.7 * TYPE
"""The width of a letter in a record."""
RADIUS = 15
CIRCLED = 2
"""A record with more letters than these is as wide as they need, up to `WIDEST`."""
WIDEST = 6
LINE_BELOW = 13
APART = 4
"""Between what two marbles show."""
COUNTED = 32
"""The space for the number of those that are not shown."""
HELD = "‖ held"
KEY_COLOURS = ("#1a7f37", "#00706c", "#0a66c2", "#7a3fc2", "#b0174f", "#a34e00", "#6b5700", "#4f5b66")
"""All dark enough for white letters on them, in both themes."""


def colour_of(key: str) -> str:
    """The colour of a key, the same in every picture.

    Example:
        >>> colour_of("even") == colour_of("even")
        True
    """
    return KEY_COLOURS[zlib.crc32(key.encode()) % len(KEY_COLOURS)]


def cut(text: str, length: int) -> str:
    """A text, limited to a number of letters.

    Example:
        >>> cut("campaign", 6)
        'campa…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def width_of(text: str) -> float:
    """About as wide as a text is drawn, in pixels: fonts differ by a tenth.

    Example:
        >>> round(width_of("06:00:00"))
        62
    """
    return TYPE * sum(0.34 if letter in ".:-il " else 0.95 if letter in "W⊕…∞mM" else 0.63 for letter in text)


def brief(us: int | None) -> str:
    """The time of day; with parts of a second in the place of the hours.

    Example:
        >>> brief(25_200_000_000), brief(25_200_500_000)
        ('07:00:00', '00:00.500')
    """
    text = format_instant(us)
    text = "∞" if text == "end" else text if len(text) < 12 else text[11:23]
    return text if len(text) <= 9 else f"{text[3:8]}.{text[9:12]}" if text[8:9] == "." else cut(text, 9)


@dataclass(frozen=True, slots=True)
class Ends:
    """A channel's line, from the sender to the receiver, and the knee before it if it passes other columns."""

    x1: float
    y1: float
    x2: float
    y2: float
    knee: tuple[float, float] | None = None

    @property
    def length(self) -> float:
        """In pixels, without the knee."""
        return hypot(self.x2 - self.x1, self.y2 - self.y1)

    @property
    def angle(self) -> float:
        """In degrees, clockwise from a line to the right."""
        return degrees(atan2(self.y2 - self.y1, self.x2 - self.x1))

    def before_end(self, distance: float) -> tuple[float, float]:
        """A point at this distance from the receiver."""
        share = 1 - distance / self.length
        return self.x1 + share * (self.x2 - self.x1), self.y1 + share * (self.y2 - self.y1)


@dataclass(frozen=True, slots=True)
class _Area:
    """Where something is written or drawn."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: _Area) -> bool:
        """Whether they overlap."""
        beside = self.right <= other.left or other.right <= self.left
        return not (beside or self.bottom <= other.top or other.bottom <= self.top)


@dataclass(frozen=True, slots=True)
class _Extent:
    """Half the widths of a marble, and of the texts above and below it; 0 if there are none."""

    middle: float
    above: float
    below: float
    lines: int

    def areas(self, x: float, y: float) -> list[_Area]:
        """What it covers."""
        found = [_Area(x - self.middle, y - RADIUS, x + self.middle, y + RADIUS)]
        if self.above:
            found.append(_Area(x - self.above, y - RADIUS - TYPE - 4, x + self.above, y - RADIUS))
        if self.below:
            low = y + RADIUS
            found.append(_Area(x - self.below, low, x + self.below, low + 3 + LINE_BELOW * self.lines))
        return found

    def distance(self, other: _Extent) -> float:
        """Between the middles of two that are side by side."""
        pairs = ((self.middle, other.middle), (self.above, other.above), (self.below, other.below))
        return max(one + another for one, another in pairs if one and another) + APART

    @property
    def widest(self) -> float:
        return max(self.middle, self.above, self.below)


def _extent(marble: Marble, ends: Ends) -> _Extent:
    if marble.kind == "record":
        lines = _under(marble)
        return _Extent(_half(marble), 0.0, max([0.0, *(width_of(line) / 2 for line in lines)]), len(lines))
    if marble.kind == "watermark":
        return _Extent(_half_of_bar(ends), width_of(_watermark(marble)) / 2, 0.0, 0)
    if marble.kind == "barrier":
        return _Extent(_half_of_bar(ends), (len(marble.text) + 1) * BOLD / 2, 0.0, 0)
    return _Extent(APART if marble.kind == "other" else _half_of_sign(marble), 0.0, 0.0, 0)


def _half(marble: Marble) -> float:
    """Half the width of a record: that of a circle, unless its text needs more."""
    letters = min(len(marble.text), WIDEST)
    return float(RADIUS) if letters <= CIRCLED else (letters * BOLD + 10) / 2


def _half_of_bar(ends: Ends) -> float:
    """Half the width of a bar across its line: the steeper the line, the wider it is."""
    return max(APART, RADIUS * abs(ends.y2 - ends.y1) / ends.length + APART * (ends.x2 - ends.x1) / ends.length)


def _half_of_sign(marble: Marble) -> float:
    return width_of(marble.text) / 2 + 5


def _watermark(marble: Marble) -> str:
    return f"W {brief(marble.time_us)}"


def marbles_svg(lines: Sequence[tuple[ChannelScene, Ends]]) -> Iterator[str]:
    """The marbles from the receivers backwards; those without space are counted.

    Args:
        lines: the channels, and where they are drawn.
    """
    queues = [_Queue(channel, ends) for channel, ends in lines]
    taken = [_held_area(queue.ends) for queue in queues if queue.channel.blocked]
    for place in range(max((len(channel.marbles) for channel, _ in lines), default=0)):
        for queue in queues:
            if place == queue.shown and place < len(queue.extents) and (point := queue.next_place(taken)) is not None:
                taken += queue.extents[place].areas(*point)
                yield _marble(queue.channel.marbles[place], *point, queue.ends, queue.channel)
    for queue in queues:
        rest = len(queue.extents) + queue.channel.more - queue.shown
        if rest:
            x, y = queue.place_of_rest(f"+{rest}", taken)
            yield f"<text class='name halo' text-anchor='middle' x='{x:.0f}' y='{y + 5:.0f}'>+{rest}</text>"


def _held_area(ends: Ends) -> _Area:
    """Where it is written that a channel is held."""
    return _Area(ends.x2 - 4 - len(HELD) * BOLD, ends.y2 - TYPE - 3, ends.x2 - 4, ends.y2 - 1)


class _Queue:
    """The marbles of a channel, of which some have their place.

    Attributes:
        shown: how many have one.
    """

    def __init__(self, channel: ChannelScene, ends: Ends) -> None:
        self.channel = channel
        self.ends = ends
        self.extents = [_extent(marble, ends) for marble in channel.marbles]
        self.shown = 0
        self._last = 0.0

    @property
    def behind(self) -> float:
        """The distance from the receiver at which the last one that is shown ends."""
        if not self.shown:
            return 12.0 + (len(HELD) * BOLD if self.channel.blocked else 0)
        return self._last + self.extents[self.shown - 1].widest

    def next_place(self, taken: Sequence[_Area]) -> tuple[float, float] | None:
        """Where the next one is shown: near the one before, but not over what is there; None if there is no space.

        The first one is shown anyway: without it nothing would be on the line.
        """
        extent, place = self.extents[self.shown], self.shown
        nearest = self._last + self.extents[place - 1].distance(extent) if place else self.behind + extent.widest
        rest = len(self.extents) + self.channel.more - place - 1
        room = self.ends.length - extent.widest - (COUNTED if rest else 0)
        at = self._free_place(extent.areas, nearest, room, taken)
        if at is None and place:
            return None
        self._last = nearest if at is None else at
        self.shown += 1
        return self.ends.before_end(self._last)

    def place_of_rest(self, text: str, taken: Sequence[_Area]) -> tuple[float, float]:
        """Where the number of those is written that are not shown."""
        half, most = width_of(text) / 2, self.ends.length - 14
        nearest = min(self.behind + 16, most)
        at = self._free_place(lambda x, y: [_Area(x - half, y - 8, x + half, y + 8)], nearest, most, taken)
        return self.ends.before_end(nearest if at is None else at)

    def _free_place(
        self, areas: Callable[[float, float], list[_Area]], nearest: float, room: float, taken: Sequence[_Area]
    ) -> float | None:
        """The distance from the receiver, from `nearest` to `room`, at which these areas meet neither what is there nor
        the tasks."""
        at = nearest
        while at <= room:
            if all(self._is_free(area, taken) for area in areas(*self.ends.before_end(at))):
                return at
            at += APART
        return None

    def _is_free(self, area: _Area, taken: Sequence[_Area]) -> bool:
        between = self.ends.x1 < area.left and area.right < self.ends.x2
        return between and not any(area.meets(other) for other in taken)


def _glides(marble: Marble, x: float, y: float, ends: Ends, channel: ChannelScene) -> str:
    """Where a marble is, and what the page needs to let it glide there: who it is, and where its channel begins and
    ends."""
    who = f"{marble.kind} {marble.number if marble.kind == 'record' else marble.text}"
    name = escape(f"{channel.source} {channel.target} {who}", quote=True)
    way = f"{ends.x1:.0f} {ends.y1:.0f} {ends.x2:.0f} {ends.y2:.0f}"
    return f"transform='translate({x:.1f} {y:.1f})' data-glides='{name}' data-way='{way}'"


def _marble(marble: Marble, x: float, y: float, ends: Ends, channel: ChannelScene) -> str:
    place, angle = _glides(marble, x, y, ends, channel), ends.angle
    text = escape(marble.text)
    if marble.kind == "record":
        return _record(marble, place)
    if marble.kind == "barrier":
        return (
            f"<g {place}><title>checkpoint barrier {text}</title>"
            f"<rect class='barrier' x='-3.5' y='-{RADIUS}' width='7' height='{2 * RADIUS}' rx='2' "
            f"transform='rotate({angle:.1f})'/>"
            f"<text class='name halo' text-anchor='middle' y='-{RADIUS + 4}'>▲{text}</text></g>"
        )
    if marble.kind == "watermark":
        return (
            f"<g {place}><title>watermark {escape(format_instant(marble.time_us))}</title>"
            f"<line class='mark' y1='-{RADIUS}' y2='{RADIUS}' transform='rotate({angle:.1f})'/>"
            f"<text class='halo' text-anchor='middle' y='-{RADIUS + 4}'>{_watermark(marble)}</text></g>"
        )
    if marble.kind == "other":
        return f"<circle {place} r='3' fill='currentColor' opacity='.5'><title>{text}</title></circle>"
    half = _half_of_sign(marble)
    return (
        f"<g {place}><rect class='box' x='-{half:.1f}' y='-11' width='{2 * half:.1f}' height='22' rx='3'/>"
        f"<text text-anchor='middle' y='5'>{text}</text></g>"
    )


def _record(marble: Marble, place: str) -> str:
    values = "; ".join(f"{name}: {value}" for name, value in (marble.values or {}).items())
    about = [
        values[:400],
        *filter(None, [marble.about]),
        *([f"event time {format_instant(marble.time_us)}"] if marble.time_us is not None else []),
    ]
    half = _half(marble)
    shape = f"<circle r='{RADIUS}'" if half == RADIUS else (
        f"<rect x='{-half:.1f}' y='{-RADIUS}' width='{2 * half:.1f}' height='{2 * RADIUS}' rx='{RADIUS}'"
    )  # fmt: skip
    fill = colour_of(marble.key) if marble.key is not None else "#57606a"
    lines = [
        f"<text class='halo under' text-anchor='middle' y='{RADIUS + LINE_BELOW * (line + 1)}'>{escape(words)}</text>"
        for line, words in enumerate(_under(marble))
    ]
    return (
        f"<g {place}><title>{escape(' · '.join(about))}</title>{shape} fill='{fill}'/>"
        f"<text class='inside' text-anchor='middle' y='5'>{escape(cut(marble.text, WIDEST))}</text>{''.join(lines)}</g>"
    )


def _under(marble: Marble) -> list[str]:
    """The text below a record: its key, its root or id, and its event time, as far as there is space."""
    key = [cut(marble.key, 9)] if marble.key and marble.key != marble.text else []
    key += [cut(marble.about, 9)] if marble.about else []
    return key + ([brief(marble.time_us)] if marble.time_us is not None else [])
