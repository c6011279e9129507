"""W1 without an engine: the compiled expression over blocks in memory, the upper bound for an engine."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from workbench.expressions import compile_expression
from workbench.lab.bench.measuring.measure import Meter, Result
from workbench.lab.bench.measuring.trial import WARM_UP, Progress, Setting, pinned, sleep
from workbench.lab.bench.works.blocks import BLOCK, Emitted, continued_text
from workbench.lab.bench.works.grep import CONDITION, SCHEMA, Grep, matching_rows

PEER = "bare"
BATCH = 65_536
"""Records in a full buffer."""


@dataclass(slots=True)
class _Searcher:
    """What one thread has searched: the number of events of its own endless input, and how many of them matched."""

    searched: Emitted = field(default_factory=Emitted)
    found: int = 0

    def run(self, text: pa.Array, halt: threading.Event) -> None:
        """Search block after block until `halt` is set."""
        condition = compile_expression(CONDITION, SCHEMA)
        first = 0
        while not halt.is_set():
            batch = pa.RecordBatch.from_arrays([text.slice(first % BLOCK, BATCH)], schema=SCHEMA)
            chosen = condition.choose(batch)
            assert isinstance(chosen, np.ndarray), "a search tells the numbers of rows"
            self.found += len(chosen)
            self.searched.add(first, BATCH)
            first += BATCH

    def exact(self) -> bool:
        """Whether it found every match."""
        return self.found == int(self.searched.times()[matching_rows()].sum())


def run_bare(setting: Setting, on_progress: Progress) -> Result:
    """Search with one thread for each subtask, on as many cores, and check the result."""
    text, halt = continued_text(), threading.Event()
    with pinned(setting.parallelism):
        searchers = [_Searcher() for _ in range(setting.parallelism)]
        threads = [threading.Thread(target=searcher.run, args=(text, halt), daemon=True) for searcher in searchers]
        for thread in threads:
            thread.start()
        sleep(0.0, WARM_UP, setting.seconds, on_progress)
        before = _events(searchers)
        with Meter() as meter:
            sleep(WARM_UP, 1.0, setting.seconds, on_progress)
            events = _events(searchers) - before
        halt.set()
        for thread in threads:
            thread.join()
    config: dict[str, object] = {"p": setting.parallelism, "kernel": "the compiled expression"}
    result = meter.result(Grep.workload, config, events, all(searcher.exact() for searcher in searchers))
    return replace(result, peer=PEER)


def _events(searchers: list[_Searcher]) -> int:
    return sum(searcher.searched.count for searcher in searchers)
