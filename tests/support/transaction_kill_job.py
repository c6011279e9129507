"""A process whose job dies by SIGKILL in the transaction of its last subtask, after those of all others are committed.

Its arguments: the servers, the topic, the folder of the checkpoints, and the parallelism.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

import pyarrow as pa

import workbench as wb
from workbench.connectors.kafka.outgoing import Outgoing

ROWS = 4_000


def job(servers: str, topic: str, folder: str, parallelism: int) -> Any:
    """The job, started or continued."""
    rows = wb.Stream.from_table(pa.table({"value": list(range(ROWS))})).rebalance()
    return rows.sink_to(wb.KafkaSink(servers, topic, delivery="transactions")).run(
        "transactions", parallelism=parallelism, checkpoint_dir=folder, checkpoint_interval="10s", resume=True
    )


def die_in_the_last(parallelism: int) -> None:
    """Let the subtasks commit one after the other, and the last one send a half of its rows, and die.

    The broker of the tests now and then leaves a transaction open that it has acknowledged as committed, if others
    write to the same partitions meanwhile: its messages are then hidden for ever, whoever takes over its ID.
    """
    others, turn = threading.Semaphore(0), threading.Lock()
    send, whole, create = Outgoing.send, Outgoing.whole, Outgoing.__init__

    def created(self: Any, topic: Any, transactional_id: str = "") -> None:
        create(self, topic, transactional_id)
        self.is_last = transactional_id.endswith(f" {parallelism - 1}")

    def committed(self: Any, act: Any) -> None:
        if self.is_last:
            for _ in range(parallelism - 1):
                others.acquire()
        with turn:
            whole(self, act)
        others.release()

    def sent(self: Any, rows: pa.RecordBatch, ids: Any = None) -> None:
        if not self.is_last:
            send(self, rows, ids)
            return
        half = rows.num_rows // 2
        send(self, rows.slice(0, half), ids[:half])
        self.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    Outgoing.__init__, Outgoing.whole, Outgoing.send = created, committed, sent  # type: ignore[method-assign]


if __name__ == "__main__":
    place, name, checkpoints, subtasks = sys.argv[1:]
    die_in_the_last(int(subtasks))
    job(place, name, checkpoints, int(subtasks)).wait()
