"""Evictors: they decide which of a window's records count when it fires; the others leave the window."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

import numpy as np
import pyarrow as pa

from workbench.arguments import whole_number
from workbench.durations import NO_TIME, format_duration, parse_duration
from workbench.elements import Int64s, Mask
from workbench.errors import RecordError, SettingError
from workbench.raised import PASSING, described, kind_of


class Evictor:
    """Base of all evictors; define your own by overriding `keep`.

    A window with an evictor keeps its records until it ends, instead of running aggregates.

    Source: Flink's ``Evictor``.

    Example:
        >>> class Positive(Evictor):
        ...     columns = ("v",)
        ...     def keep(self, records, times):
        ...         return records["v"].to_numpy() > 0
        >>> Positive().keep(pa.record_batch({"v": [1, -1]}), np.zeros(2, np.int64)).tolist()
        [True, False]
    """

    __slots__ = ()

    columns: ClassVar[tuple[str, ...]] = ()
    """Names of the records' columns that `keep` reads; it receives these, and perhaps others."""

    def keep(self, records: pa.RecordBatch, times: Int64s) -> Mask:
        """Which records of one window stay, shape (n,); called before each firing.

        Args:
            records: n rows in the order of their arrival.
            times: shape (n,), in microseconds since 1970; NO_TIME where a record has none.
        """
        raise NotImplementedError(type(self).__name__)  # abstract

    def keep_in_windows(self, records: pa.RecordBatch, times: Int64s, bounds: Int64s) -> Mask:
        """The same for many windows.

        Args:
            records: n rows, window after window.
            times: shape (n,), in microseconds since 1970; NO_TIME where a record has none.
            bounds: shape (windows + 1,): window w has the rows [bounds[w], bounds[w + 1]).

        Returns:
            Shape (n,): which records stay.
        """
        masks = [
            self._kept(records.slice(begin, end - begin), times[begin:end])
            for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        ]
        return np.concatenate(masks) if masks else np.zeros(0, np.bool_)

    def _kept(self, records: pa.RecordBatch, times: Int64s) -> Mask:
        """The records of one window that stay; an exception of a user's class is reported with the class's name."""
        try:
            return np.asarray(self.keep(records, times), np.bool_)
        except PASSING:
            raise
        except BaseException as error:
            raise RecordError(
                f"the evictor {kind_of(self)} failed on {len(times)} records of a window with {described(error)}; it "
                "must return a boolean for each"
            ) from error

    def describe(self) -> str:
        """One short text for the graph."""
        return type(self).__name__


@dataclass(frozen=True, slots=True)
class KeepLast(Evictor):
    """Keeps the last `n` records of a window."""

    n: int

    def __post_init__(self) -> None:
        if whole_number(self.n, "keep_last", 0) == 0:
            raise SettingError(f"keep_last({self.n}): a window keeps at least one record")

    def keep_in_windows(self, records: pa.RecordBatch, times: Int64s, bounds: Int64s) -> Mask:
        """All windows at once."""
        ends = np.repeat(bounds[1:], np.diff(bounds))
        kept: Mask = np.arange(len(times)) >= ends - self.n
        return kept

    def describe(self) -> str:
        return f"keep last {self.n}"


@dataclass(frozen=True, slots=True)
class KeepSince(Evictor):
    """Keeps the records of a window that are less than `span_us` older than its latest one.

    A record without a time stays if no record of the window has one.
    """

    span_us: int

    def __post_init__(self) -> None:
        if self.span_us <= 0:
            raise SettingError(f"keep_since({format_duration(self.span_us)}): the span must be longer than zero")

    def keep_in_windows(self, records: pa.RecordBatch, times: Int64s, bounds: Int64s) -> Mask:
        """All windows at once."""
        filled = bounds[:-1][np.diff(bounds) > 0]
        latest = np.repeat(np.maximum.reduceat(times, filled), np.diff(np.append(filled, len(times))))
        timeless = times == NO_TIME
        kept: Mask = np.where(timeless, latest == NO_TIME, latest - times < self.span_us)
        return kept

    def describe(self) -> str:
        return f"keep since {format_duration(self.span_us)}"


def keep_last(n: int) -> KeepLast:
    """Keep the last `n` records, in the order of arrival.

    Source: Flink's ``CountEvictor``.

    Args:
        n: number of records, above zero.

    Raises:
        SettingError: `n` is not above zero.

    Example:
        >>> keep_last(100).describe()
        'keep last 100'
    """
    return KeepLast(n)


def keep_since(span: str | timedelta) -> KeepSince:
    """Keep the records whose time is less than `span` before the latest time in the window.

    Source: Flink's ``TimeEvictor``.

    Args:
        span: a duration above zero, such as ``"10s"``.

    Raises:
        SettingError: not a duration above zero.

    Example:
        >>> keep_since("10s").describe()
        'keep since 10s'
    """
    return KeepSince(parse_duration(span, "the span of keep_since()"))
