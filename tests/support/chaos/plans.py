"""What happens in a run, drawn from its seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from .flows import APPENDING, UPDATING
from .judge import Promise

SERVER_OF = {
    **dict.fromkeys(("kafka", "kafka-at-least-once", "kafka-transactions"), "kafka"),
    **dict.fromkeys(("nats", "nats-at-least-once"), "nats"),
    **dict.fromkeys(("redis", "redis-hash"), "redis"),
    **dict.fromkeys(("postgresql", "postgresql-log", "postgresql-upsert"), "postgresql"),
    "mqtt": "mqtt",
}
"""By source and sink; the others are files."""

SOURCES = (*("kafka", "nats", "redis", "postgresql", "postgresql-log", "mqtt"), *("jsonl", "csv", "parquet"))
SHARES = (3, 3, 3, 2, 5, 2, 1, 1, 1)
"""How often each source is drawn."""

RETRACTING = ("duckdb-upsert", "postgresql-upsert", "sqlite-upsert")
"""Sinks that also delete rows."""

SERVERS = ("kafka", "nats", "redis", "postgresql", "mqtt")

ON_JOBS = ("kill", "kill-in-checkpoint", "rescale", "rescale-live", "stop", "savepoint", "stall")
ON_CONNECTIONS = ("cut", "slow", "torn", "kill-in-request", "kill-in-answer")
ON_SERVERS = ("restart", "hang")
FAULTS = (*ON_JOBS, *ON_CONNECTIONS, *ON_SERVERS)
"""Kinds of faults:

- kill, rescale: the job's process is killed, and another one continues, with another parallelism.
- kill-in-checkpoint: its process is killed while it takes a checkpoint.
- rescale-live: the running job is told to change its parallelism.
- stop, savepoint: it ends with a last checkpoint, or is killed behind a savepoint, and another one continues from that.
- stall: the job's process is stopped for a while.
- cut, slow, torn: the connections to a server end for a while, are slow, or end in the middle of what is sent.
- kill-in-request, kill-in-answer: the job's process is killed in the middle of what it sends or receives.
- restart, hang: the server is killed and started again, or is stopped for a while.
"""


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        kind: see `FAULTS`.
        server: that it hits; empty: the job.
        row: it begins when so many rows have been fed.
        for_s: how long it lasts.
        kills: whether the job's process is killed, and another one started, before it ends.
        parallelism: of the next process.
        after: how many bytes pass before a connection is cut, or the job killed, in the middle of them.
        awaits: whether it begins when the process has read rows and completed a checkpoint, or at once.
    """

    kind: str
    server: str
    row: int
    for_s: float
    kills: bool
    parallelism: int
    after: int
    awaits: bool

    def __str__(self) -> str:
        where = f" of {self.server}" if self.server else ""
        during = " and a kill" if self.kills else ""
        at = f"{'at work ' if self.awaits else ''}at row {self.row}"
        return f"{self.kind}{where}{during} {at} ({self.for_s:.1f} s, then {self.parallelism} subtasks)"


@dataclass(frozen=True)
class Plan:
    """One run.

    Attributes:
        seed: that it was drawn from.
        source: its kind.
        sinks: their kinds.
        shape: ``rows`` or ``counts``; see `flows`.
        rows: how many are fed.
        before: how many of them before the job starts.
        parallelism: of the first process.
        mode, interval: of checkpoints.
        faults: in their order.
    """

    seed: int
    source: str
    sinks: tuple[str, ...]
    shape: str
    rows: int
    before: int
    parallelism: int
    mode: str
    interval: str
    faults: tuple[Fault, ...]

    @property
    def servers(self) -> tuple[str, ...]:
        """That take part, the source's first; without the files."""
        names = (SERVER_OF.get(each, "") for each in (self.source, *self.sinks))
        return tuple(dict.fromkeys(name for name in names if name))

    def promise(self, sink: str) -> Promise:
        """What the documentation promises for the rows in a sink."""
        again = sink.endswith(("at-least-once", "transactions"))  # the broker here also delivers aborted messages
        if self.source == "mqtt":
            return Promise.NEITHER if again else Promise.AT_MOST_ONCE
        return Promise.AT_LEAST_ONCE if again else Promise.EXACTLY_ONCE

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.source} -> {self.shape} -> {' + '.join(self.sinks)}"


def drawn(seed: int, most_faults: int = 6) -> Plan:
    """The run of a seed, the same every time."""
    chance = Random(f"chaos {seed}")
    (source,) = chance.choices(SOURCES, SHARES)
    shape = "rows" if source == "mqtt" else chance.choice(("rows", "counts"))
    if source == "postgresql-log":
        sinks = tuple(chance.sample(RETRACTING, chance.choice((1, 1, 2))))
    else:
        # The output of a job that reads MQTT is read while the job runs, which DuckDB does not allow.
        sinks = (chance.choice(sorted(set(APPENDING) - ({"duckdb"} if source == "mqtt" else set()))),)
        if source != "mqtt" and chance.random() < 0.4:
            sinks += (chance.choice(sorted(UPDATING)),)
    plan = Plan(
        seed=seed,
        source=source,
        sinks=sinks,
        shape=shape,
        rows=chance.randrange(300, 900),
        before=0,
        parallelism=chance.choice((1, 2, 3)),
        mode=chance.choice(("exactly-once", "exactly-once", "unaligned")),
        interval=chance.choice(("30ms", "100ms", "300ms")),
        faults=(),
    )
    before = 0 if source == "mqtt" else plan.rows // chance.choice((3, 5, 100))
    count = chance.randrange(3, most_faults + 1)
    step = (plan.rows - before) / count
    faults = tuple(_fault(chance, plan, int(before + step * (at + chance.random()))) for at in range(count))
    return replace(plan, before=before, faults=faults)


def _fault(chance: Random, plan: Plan, row: int) -> Fault:
    servers = plan.servers
    kinds = [*ON_JOBS, *(ON_CONNECTIONS * 2 + ON_SERVERS * 3 if servers else ())]
    kind = chance.choice(kinds)
    server = "" if kind in ON_JOBS else chance.choice(servers)
    if kind == "restart" and server == "kafka":
        kind = "cut"
    lasting = {"stall": 3.0, "slow": 2.0, "hang": 4.0, "restart": 1.5}.get(kind, 1.0)
    kills = kind in ("cut", "restart", "hang", "slow") and chance.random() < 0.4
    return Fault(
        kind=kind,
        server=server,
        row=row,
        for_s=round(chance.uniform(0.1, min(lasting, 1.5) if kills else lasting), 2),
        kills=kills,
        parallelism=chance.choice((1, 2, 3)),
        after=int(10 ** chance.uniform(0, 4)),
        awaits=chance.random() < 0.7,
    )


def runs(count: int, first: int, only: Sequence[str]) -> list[Plan]:
    """So many runs from a seed on, of those that have to do with one of these servers, sources or sinks."""
    found: list[Plan] = []
    seed = first
    while len(found) < count:
        plan = drawn(seed)
        if not only or set(only) & {*plan.servers, plan.source, *plan.sinks}:
            found.append(plan)
        seed += 1
    return found
