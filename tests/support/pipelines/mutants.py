"""Small faults of the engine, one at a time, that random pipelines must find.

A mutant replaces a piece of one function's text by another while it is in force. ``python -m pipelines.mutants 200``
(from ``tests/``) runs so many seeds at most until one of them fails, and tells which.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from . import aggregates, counts, joins, late, processes, several, windows
from .generator import Operator
from .running import check


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes:
        place: module, a colon, and the function's qualified name, without the package's name.
        old, new: a piece of its text, which occurs in it once, and what stands there instead.
        only: what pipelines are made of, so that most of them reach the place; None: of anything.
    """

    place: str
    old: str
    new: str
    only: Operator | None = None

    def __str__(self) -> str:
        return f"{self.place}: {self.old!r} -> {self.new!r}"


MUTANTS = (
    Mutant(
        "windows.tumbling:Tumbling.assign",
        "starts + self.size_us",
        "starts + self.size_us - 1",
        only=windows.time_window,
    ),
    Mutant("windows.tumbling:Tumbling.panes", "times - self.offset_us", "times", only=windows.time_window),
    Mutant("windows.sliding:Sliding.assign", "> times[rows]", ">= times[rows]", only=windows.time_window),
    Mutant("windows.count:CountWindows.assign", "starts >= 0", "starts > 0", only=counts.count_window),
    Mutant("windows.session:Session.reached", "watermark_us - 1", "watermark_us"),
    Mutant(
        "windows.evictor:KeepLast.keep_in_windows", ">= ends - self.n", "> ends - self.n", only=counts.fired_by_count
    ),
    Mutant("windows.evictor:KeepSince.keep_in_windows", "< self.span_us", "<= self.span_us", only=windows.time_window),
    Mutant(
        "operators.windows.firing:Moment.passed_end",
        "self.watermark_us + 1",
        "self.watermark_us + 1_000_000",
        only=windows.time_window,
    ),
    Mutant("operators.windows.firing:ScheduledFiring.due", "pending[at_end] = False", "pass", only=windows.time_window),
    Mutant("operators.windows.firing:ScheduledFiring.load", "if pending.any()", "if False", only=windows.time_window),
    Mutant("operators.windows.firing:ScheduledFiring._count", "self._purge)", "False)", only=counts.fired_by_count),
    Mutant(
        "operators.windows.operator:WindowOperator._closed_end",
        "- self._settings.allowed_lateness_us",
        "",
        only=late.late_alone,
    ),
    Mutant(
        "operators.windows.operator:WindowOperator._put_aside", "elif count:", "elif count > 1:", only=late.late_alone
    ),
    Mutant(
        "operators.windows.operator:WindowOperator._with_times",
        "if not timeless.any()",
        "if True",
        only=windows.time_window,
    ),
    Mutant(
        "operators.windows.operator:WindowOperator.on_watermark",
        "watermark_us == MAX_TIME",
        "False",
        only=windows.time_window,
    ),
    Mutant(
        "operators.windows.entries:WindowEntries.snapshot",
        "live = self.live()",
        "live = self.live()[1:]",
        only=windows.time_window,
    ),
    Mutant("operators.windows.scripted:ScriptedFiring._note", "if action.purges", "if False", only=windows.triggered),
    Mutant("operators.windows.sessions:SessionPlaces.add", "self._link(entries)", "pass", only=windows.time_window),
    Mutant(
        "operators.aggregates.window_functions:_medians", "counts // 2", "(counts - 1) // 2", only=windows.time_window
    ),
    Mutant(
        "operators.joins.window:_WindowJoin._take",
        "wanted = ends - 1 >",
        "wanted = ends - 2_000_000 >",
        only=joins.window_join,
    ),
    Mutant("operators.joins.window:_WindowJoin._take_over", "item.where(~over)", "None", only=joins.window_join),
    Mutant(
        "operators.joins.window:_WindowJoin.restore",
        "for port, batch, table in self._restored(snapshots)",
        "for port, batch, table in ()",
        only=joins.window_join,
    ),
    Mutant(
        "operators.joins.groups:emit_joined", "np.where(complete, of_right, groups)", "of_right", only=joins.window_join
    ),
    Mutant("operators.joins.groups:emit_joined", "if columns.keeps_right", "if False", only=joins.window_join),
    Mutant("operators.joins.session:SessionJoinLogic._now", ").any()", ").all()", only=joins.window_join),
    Mutant(
        "operators.joins.session:SessionJoinLogic.restore",
        "self._next_end = int(found[:, 2].min())",
        "pass",
        only=joins.window_join,
    ),
    Mutant("operators.joins.interval:_IntervalJoin.__init__", "max(spec.after_us, 0)", "0", only=joins.interval_join),
    Mutant(
        "operators.joins.interval:_IntervalJoin.on_watermark",
        "times + self._wait_us",
        "times - self._wait_us",
        only=joins.interval_join,
    ),
    Mutant("operators.joins.interval:_IntervalJoin._forget", "self._right_kept_us", "0", only=joins.interval_join),
    Mutant(
        "operators.joins.lookup:_LookupJoin.process",
        "alone[lefts] if alone.any() else None",
        "None",
        only=joins.lookup_join,
    ),
    Mutant(
        "operators.event_time.punctuated:PunctuatedGenerator.observe",
        "lowest_after <= reached",
        "lowest_after < reached",
    ),
    Mutant("operators.event_time.watermarks:BoundedGenerator.on_periodic", "- self.bound_us - 1", "- self.bound_us"),
    Mutant("operators.joins.async_lookup:_AsyncLookup._send_on", "if kept:", "if False:", only=joins.lookup_async),
    Mutant(
        "operators.joins.async_lookup:_AsyncLookup.snapshot",
        "np.flatnonzero(item.waiting)",
        "np.empty(0, np.int64)",
        only=joins.lookup_async,
    ),
    Mutant(
        "operators.joins.lookup_batch:LookupBatch.answerable", "ready & self.waiting", "ready", only=joins.lookup_async
    ),
    Mutant(
        "operators.aggregates.reduce:ReduceLogic.restore", "self._held[code] = record", "pass", only=aggregates.reduced
    ),
    Mutant("operators.stateless.split:_Split.process", "rest &= ~chosen", "pass", only=several.parted),
    Mutant("operators.process.broadcast_state:SharedState.load", "self.states[:] =", "_ =", only=several.connected),
    Mutant("state.timers:Timers.remove", "self._set.discard((time_us, code))", "pass", only=processes.timed_process),
    Mutant("state.timers:Timers.arrays", "sorted(self._set)", "sorted(self._set)[1:]", only=processes.timed_process),
    Mutant("state.states_on_disk:StatesOnDisk._write", "writes.put(key, row)", "pass", only=processes.timed_process),
    Mutant("state.key_groups:owned_rows", "owners == subtask", "owners >= subtask", only=aggregates.rolling),
    Mutant("state.key_columns:to_ints", "values += 0.0", "pass", only=aggregates.rolling),
    Mutant("state.key_columns:to_ints", "values[np.isnan(values)] = np.nan", "pass", only=aggregates.rolling),
    Mutant(
        "runtime.exchange.input_gate:WatermarkValve.advance",
        "channel.watermark_us < lowest",
        "channel.watermark_us > lowest",
    ),
    Mutant("connectors.contract.block_reader:BlockReader.restore", "[split] = position", "[split] = position + 1"),
)


def _function(place: str) -> Any:
    module, _, path = place.partition(":")
    found: Any = importlib.import_module(f"workbench.{module}")
    for part in path.split("."):
        found = getattr(found, part)
    return found


@contextmanager
def in_force(mutant: Mutant) -> Iterator[None]:
    """The engine with this fault."""
    function = _function(mutant.place)
    text = textwrap.dedent(inspect.getsource(function))
    assert text.count(mutant.old) == 1, f"{mutant} fits {text.count(mutant.old)} times"
    made: dict[str, Any] = {}
    body = textwrap.indent(text.replace(mutant.old, mutant.new), "    ")
    free = ", ".join(function.__code__.co_freevars)  # __class__, of a function with super()
    program = f"from __future__ import annotations\ndef outer({free}):\n{body}\n    return {function.__name__}"
    exec(compile(program, str(mutant), "exec"), function.__globals__, made)
    saved = function.__code__  # whoever has imported the function gets the fault, too
    function.__code__ = made["outer"](*function.__code__.co_freevars).__code__
    try:
        yield
    finally:
        function.__code__ = saved


def found_by(mutant: Mutant, seeds: Iterable[int]) -> int | None:
    """The first seed that fails; None: none does."""
    with in_force(mutant):
        for seed in seeds:
            try:
                check(seed, only=mutant.only)
            except Exception:  # noqa: BLE001  a mutant may fail in any way
                return seed
    return None


def main() -> None:
    """Tell for each mutant which seed finds it; the only argument is how many seeds are tried."""
    for mutant in MUTANTS:
        sys.stdout.write(f"{found_by(mutant, range(int(sys.argv[1])))}: {mutant}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
