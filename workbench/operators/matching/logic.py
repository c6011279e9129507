"""The operator logic of pattern matching."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from workbench.compiled import order_by_code, order_by_time, warm_up
from workbench.durations import LATEST_TIME, MAX_TIME, NO_TIME
from workbench.elements import Int64s, Records
from workbench.errors import RecordError
from workbench.operators.aggregates.grouping import one_key
from workbench.operators.contract.base import Operator, OperatorContext, Output, Snapshot
from workbench.operators.contract.python_rows import python_rows
from workbench.operators.matching.conditions import Conditions
from workbench.operators.matching.found import Found, FoundRows
from workbench.operators.matching.kept_rows import KeptRows
from workbench.operators.matching.partials import (
    END,
    MISSING,
    STUCK,
    TICK,
    TOO_LARGE,
    TOO_MANY,
    IntRows,
    Partials,
    StepError,
)
from workbench.operators.matching.saved import restored, saved
from workbench.operators.matching.waiting_rows import Timed, WaitingRows
from workbench.operators.snapshots.past_watermarks import PastWatermarks
from workbench.raised import shown
from workbench.state.key_index import KeyIndex

if TYPE_CHECKING:
    from workbench.operators.matching.match import MatchRows

_MOVES_PER_ROW = 32  # with more moves, rows are far from sorted
_SPARE_ROWS = 8_192  # fewer unneeded rows are not worth dropping
_FEW_KEYS = 1_024  # fewer keys are not worth packing


class MatchLogic(Operator):
    """State: the rows that wait for the watermark, the rows that partial matches have bound, the partial matches, and,
    if matches are numbered, the number of matches of each key.

    Args:
        spec: the operator.
        schema: of the input.
        output: its schema.
    """

    def __init__(self, spec: MatchRows, schema: pa.Schema, output: pa.Schema) -> None:
        warm_up(order_by_code, order_by_time)
        self._spec = spec
        self._schema = schema
        self._index = KeyIndex(spec.keys, schema)
        self._waiting = WaitingRows(schema)
        self._conditions = Conditions(spec, schema)
        program = self._conditions.program
        self._asks = spec.rules.asked and not len(program.conditions)
        self._kept = KeptRows(schema, program)
        self._partials = Partials(spec.automaton, spec.rules, program)
        self._found = FoundRows(spec, schema, output)
        terms = [term for _, _, term in spec.conditions] + [term for _, term in spec.measures]
        shifts = [one.shift for term in terms for one in term.references]
        self._behind = max([0, *shifts])  # rows after a row that must be known
        self._before = -min([0, *shifts])
        numbered = any(one.kind == "number" for _, term in spec.measures for one in term.references)
        self._numbers: Int64s | None = np.zeros(0, np.int64) if numbered else None
        self._latest: Int64s = np.zeros(0, np.int64)  # by key, the number of the last stepped row, plus 1
        self._watermark = NO_TIME
        self._rows_before = 0  # kept rows that were needed at the last dropping

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._past = PastWatermarks(context)

    # rows ---------------------------------------------------------------------------------------------------------

    def process(self, records: Records, port: int, out: Output) -> None:
        if records.timestamps is None:
            raise RecordError(
                "records without event times reached a pattern: name the event-time column at the source (event_time=)",
                origin=self._spec.origin,
            )
        for part, watermark_us in self._past.parts(records, self._spec.keys, self._watermark):
            self._take(part, watermark_us)

    def _take(self, records: Records, watermark_us: int) -> None:
        records = self._context.counters.on_time(records, watermark_us, self._spec.keys)
        if records:
            assert records.timestamps is not None
            codes = self._index.codes(records.batch)
            self._waiting.add(Timed(records.batch, codes, np.ascontiguousarray(records.timestamps)))

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        if watermark_us <= self._watermark:
            return
        due = self._waiting.take(watermark_us)
        keys = len(self._index)
        self._partials.grow(keys)
        self._latest = _grown(self._latest, keys)
        if self._numbers is not None:
            self._numbers = _grown(self._numbers, keys)
        found = list(self._step(due, watermark_us))
        found += self._advance(watermark_us)
        self._emit(found, out)
        self._watermark = watermark_us
        self._forget()

    def _step(self, due: Timed, watermark_us: int) -> Iterator[IntRows]:
        """Step the partial matches over the rows that are due."""
        if not len(due):
            return
        due = due.take(_order(due.codes, due.times))
        base = len(self._kept)
        begins = np.flatnonzero(np.r_[True, due.codes[1:] != due.codes[:-1]])
        previous = np.full(len(due), -1, np.int64)
        previous[begins] = self._latest[due.codes[begins]] - 1
        self._kept.add(due, previous)
        sizes = np.diff(np.r_[begins, len(due)])
        at = np.arange(len(due)) - np.repeat(begins, sizes)  # the index among the rows of the key
        rows = np.arange(base, base + len(due))
        if self._behind and watermark_us != MAX_TIME:
            ready = at < np.repeat(np.maximum(sizes - self._behind, 0), sizes)
            self._waiting.put_back(due.take(np.flatnonzero(~ready)))
            bits = self._conditions.of_rows(due.batch, rows, self._kept)
            due, rows, bits, at = due.take(np.flatnonzero(ready)), rows[ready], bits[ready], at[ready]
        else:
            bits = self._conditions.of_rows(due.batch, rows, self._kept)
        self._latest[due.codes] = rows + 1 if self._before else 0
        if not self._asks:
            yield self._stepped(due.codes, rows, due.times, bits)
            return
        waves = np.argsort(at, kind="stable")  # the first rows of all keys, the second ones, ...
        cuts = np.r_[0, np.cumsum(np.bincount(at))] if len(at) else [0]
        for begin, end in pairwise(cuts):
            wave = waves[begin:end]
            codes = due.codes[wave]
            self._conditions.ask(self._partials, codes, rows[wave], bits[wave], self._kept)
            yield self._stepped(codes, rows[wave], due.times[wave], bits[wave])

    def _stepped(self, codes: Int64s, rows: Int64s, times: Int64s, bits: Int64s) -> IntRows:
        try:
            found = self._partials.step(codes, rows, times, bits, self._kept)
        except StepError as error:
            raise self._failure(error.reason, int(codes[error.at])) from None
        return found

    def _failure(self, reason: int, code: int) -> RecordError:
        of_key, subject = "", "the stream"
        if self._spec.keys:
            [key] = python_rows(self._index.keys_table(np.array([code])))
            subject = f"key {shown(_plain(key))}"
            of_key = f" of {subject}"
        rules = self._spec.rules
        named = [name for at, name in enumerate(self._spec.automaton.variables) if rules.skip_mask >> at & 1]
        where = f"the pattern {self._spec.text} skips {rules.skip.replace('_', ' ')} {' or '.join(named)}"
        message = {
            TOO_MANY: f"{subject} has more than {rules.partials_max:,} partial matches of {self._spec.text}: "
            "bound their time with within, make a stage match fewer rows, or set partials_max",
            MISSING: f"{where}, but a match{of_key} has no such row: name a variable that every match has",
            STUCK: f"{where}, and a match{of_key} begins there, so it would be found again forever: skip to another "
            "row",
            TOO_LARGE: f"a sum in a condition of {self._spec.text}{of_key} exceeds the range of int64: convert the "
            "values with CAST(... AS DOUBLE)",
        }[reason]
        return RecordError(message, origin=self._spec.origin)

    def _advance(self, watermark_us: int) -> Iterator[IntRows]:
        """End the partial matches whose time has run out, and all of them at the end of the input."""
        codes = self._partials.due(min(watermark_us, LATEST_TIME))
        if self._behind and watermark_us != MAX_TIME:  # waiting rows may still be in time
            held = np.zeros(len(self._index), np.bool_)
            self._waiting.mark_codes(held)
            codes = codes[~held[codes]]
        if len(codes):
            yield self._moved(codes, min(watermark_us, LATEST_TIME), TICK)
        if watermark_us == MAX_TIME:
            last = int(self._kept.times.max(initial=self._watermark))
            yield self._moved(self._partials.codes(), min(max(last, self._watermark + 1), LATEST_TIME), END)

    def _moved(self, codes: Int64s, time_us: int, kind: int) -> IntRows:
        none = np.full(len(codes), -1, np.int64)
        return self._stepped(codes, none, np.full(len(codes), time_us), np.full(len(codes), kind))

    # results ------------------------------------------------------------------------------------------------------

    def _emit(self, found: Sequence[IntRows], out: Output) -> None:
        some = [one for one in found if len(one)]
        if not some:
            return
        matches = Found(np.concatenate(some), self._partials.nodes, self._index)
        numbers = matches.number(self._numbers)
        self._found.emit(matches, numbers, self._kept, out)

    # memory -------------------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Drop rows, nodes and keys that are no longer needed, if there are enough of them."""
        if max(len(self._kept), self._partials.nodes_used()) > _SPARE_ROWS + 2 * self._rows_before:
            self._drop_rows()
        live = len(self._partials.codes()) + len(self._waiting)
        if self._numbers is None and not self._before and len(self._index) > _FEW_KEYS + 2 * live:
            used = np.zeros(len(self._index), np.bool_)
            used[self._partials.codes()] = True
            used[self._kept.codes] = True
            self._waiting.mark_codes(used)
            mapping = self._index.retain(np.flatnonzero(used))
            self._partials.recode(mapping)
            self._waiting.recode(mapping)
            self._kept.codes = mapping[self._kept.codes]
            self._latest = np.zeros(len(self._index), np.int64)

    def _drop_rows(self) -> None:
        mapping = self._partials.retain(len(self._kept), self._needed)
        self._rows_before = max(len(self._kept), self._partials.nodes_used())
        if self._before:
            known = self._latest > 0
            self._latest[known] = mapping[self._latest[known] - 1] + 1

    def _needed(self, used: Int64s) -> Int64s:
        """Drop the rows that are neither used nor read by terms."""
        if self._before:
            used[self._latest[self._latest > 0] - 1] = 1
        rows = np.flatnonzero(used)
        for shift in (*range(-self._before, 0), *range(1, self._behind + 1)):
            around = self._kept.shifted(rows, shift)
            used[around[around >= 0]] = 1
        return self._kept.retain(used)

    # snapshots and queries ----------------------------------------------------------------------------------------

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        self._drop_rows()
        numbers = None if self._numbers is None else _grown(self._numbers, len(self._index))
        latest = _grown(self._latest, len(self._index))
        pieces = saved(self._spec.text, self._index, self._waiting, self._kept, self._partials, latest, numbers)
        return {"watermarks": self._past.snapshot(self._watermark), **pieces}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        self._watermark = self._past.restore(snapshots)
        loaded = restored(snapshots, self._spec, self._schema, self._index, self._context)
        keys = len(self._index)
        self._partials.grow(keys)
        self._waiting.add(loaded.waiting)
        loaded.into(self._kept, self._partials)
        self._latest = _grown(self._latest, keys)
        if self._before:
            self._latest[loaded.latest_codes] = loaded.latest_rows + 1
        if self._numbers is not None:
            self._numbers = _grown(self._numbers, keys)
            self._numbers[loaded.numbered_codes] = loaded.numbers
        self._rows_before = len(self._kept)

    def query(self, key: Mapping[str, object]) -> Mapping[str, object] | None:
        """The waiting rows, and the partial matches: what each waits for, and its rows by variable."""
        [code] = self._index.find(one_key(self._spec.keys, self._schema, key)).tolist()
        if code < 0:
            return None
        waiting = self._waiting.count(code)
        if code >= len(self._partials.heads):
            return {"waiting_rows": waiting, "partial_matches": []}
        places, _ = self._partials.of(np.array([code]))
        return {"waiting_rows": waiting, "partial_matches": self._found.described(self._partials, places, self._kept)}

    def query_keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        """The keys with state; those with partial matches come first."""
        live = self._partials.codes()
        live = live[live < len(self._index)]
        others = np.setdiff1d(np.arange(len(self._index)), live)
        chosen = np.concatenate([live, others])[:limit]
        return len(self._index), python_rows(self._index.keys_table(chosen))


def _order(codes: Int64s, times: Int64s) -> Int64s:
    """The order of rows by code, then by time, then by arrival."""
    groups = int(codes.max()) + 1
    if groups <= 4 * len(codes):
        starts = np.empty(groups + 1, np.int64)
        order = np.empty(len(codes), np.int64)
        order_by_code(codes, starts, order)
        if order_by_time(times, starts, order, _MOVES_PER_ROW * len(codes)):
            return order
    return np.lexsort((times, codes))


def _grown(values: Int64s, size: int) -> Int64s:
    return np.concatenate([values, np.zeros(size - len(values), np.int64)]) if size > len(values) else values


def _plain(key: Mapping[str, object]) -> object:
    values = tuple(key.values())
    return values[0] if len(values) == 1 else values
