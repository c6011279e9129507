"""Flink SQL on the queries and tables of a benchmark: ``PYTHON flink_sql.py WORK SECONDS``.

Needs the package ``apache-flink`` and Java. Each query runs in one JVM at parallelism 1, without checkpoints, with
its state in memory and with the settings for tables of github.com/nexmark/nexmark (config.yaml). It ends in
a blackhole. A run before warms the JVM up. CPU time is that of this process and of the JVM, the compiler and the
garbage collector included.

The tables are CSV files, since the package reads no faster format. Each query therefore gives two lines: with
what reading costs, and without. The latter subtracts the CPU time of a query that only reads the same columns.

Where the work has the rows of a query, they are compared with those of one more run that is not measured.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, Schema, Table, TableDescriptor, TableEnvironment

SETTINGS = {
    "parallelism.default": "1",
    "pipeline.object-reuse": "true",
    "table.exec.mini-batch.allow-latency": "2s",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.size": "50000",
    "table.local-time-zone": "UTC",
    "table.optimizer.distinct-agg.split.enabled": "true",
}
LEAST_SHARE = 0.1
"""The share of a query's time below which the difference to reading means nothing."""


class Cost:
    """What a run takes.

    Attributes:
        cpu_s: CPU seconds of all processes.
        seconds: wall time.
    """

    def __init__(self, cpu_s: float, seconds: float) -> None:
        self.cpu_s, self.seconds = cpu_s, seconds


class Peer:
    """A table environment with the tables of a work.

    Args:
        folder: where `workbench` has written them.
        seconds: how long each query is repeated after its first run; at least once.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        self._work = json.loads((folder / "work.json").read_text(encoding="utf-8"))
        self._seconds = seconds
        self._reading: dict[tuple[str, ...], Cost] = {}
        self._sinks = 0
        self._environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        for name, value in SETTINGS.items():
            self._environment.get_config().set(name, value)
        for name, table in self._work["tables"].items():
            columns = [f"`{column}` {kind}" for column, kind in table["columns"].items()]
            if (time_of := table["event_time"]) is not None:
                behind = f"INTERVAL '{table['out_of_orderness_s']}' SECOND"
                columns.append(f"WATERMARK FOR `{time_of}` AS `{time_of}` - {behind}")
            self._environment.execute_sql(
                f"CREATE TABLE {name} ({', '.join(columns)}) WITH ('connector' = 'filesystem', 'format' = 'csv', "
                f"'path' = '{(folder / table['file']).as_uri()}')"
            )

    def results(self, work: str) -> Iterator[dict[str, Any]]:
        """Two lines for each query, or the reason why it does not run."""
        self._cost(*(f"SELECT * FROM {table}" for table in self._work["tables"]))  # compiles what reads
        for name, script in self._work["queries"].items():
            *views, text = script.split(";")
            line: dict[str, Any] = {"peer": "flink_sql", "workload": work, "checked": True}
            config = {"query": name, "p": 1}
            try:
                for view in views:
                    self._environment.execute_sql(view)
                whole, reading = self._cost(text), self._reading_cost(text)
                line["checked"] = self._is_exact(name, text)
            except Exception as error:  # noqa: BLE001 - whatever Java raises
                yield line | {"skipped": f"{name}: {_reason(str(error))}"}
                continue
            yield line | self._figures(name, whole) | {"config": config | {"reading": "included"}}
            rest = whole.cpu_s - reading.cpu_s
            if rest > LEAST_SHARE * whole.cpu_s:
                without = self._figures(name, Cost(rest, whole.seconds))
                yield line | without | {"config": config | {"reading": "subtracted"}}

    def _is_exact(self, name: str, text: str) -> bool:
        """Whether a query gives the rows of the work, if it has them."""
        if name not in self._work.get("answers", {}):
            return True
        expected = Counter(map(tuple, self._work["answers"][name]))
        with self._environment.sql_query(text).execute().collect() as rows:
            return Counter(tuple(map(_plain, row)) for row in rows) == expected

    def _figures(self, name: str, cost: Cost) -> dict[str, Any]:
        events = self._work["events"][name]
        return {
            "events": events,
            "seconds": round(cost.seconds, 2),
            "eps": round(events / cost.seconds),
            "eps_core": round(events / cost.seconds),
            "eps_cpu_s": round(events / cost.cpu_s),
            "rss_mb": _resident_mb(),
            "cores": len(os.sched_getaffinity(0)),
            "load1": round(os.getloadavg()[0], 2),
        }

    def _cost(self, *texts: str) -> Cost:
        """The cheapest run after the first of some queries in one job."""
        tables = [self._environment.sql_query(text) for text in texts]
        sinks = [self._blackhole(table) for table in tables]
        found: list[Cost] = []
        began = time.perf_counter()
        while len(found) < 2 or time.perf_counter() - began < self._seconds:
            job = self._environment.create_statement_set()
            for sink, table in zip(sinks, tables, strict=True):
                job.add_insert(sink, table)
            cpu, wall = _cpu_s(), time.perf_counter()
            job.execute().wait()
            found.append(Cost(_cpu_s() - cpu, time.perf_counter() - wall))
            if len(found) == 1:
                began = time.perf_counter()
        return min(found[1:], key=lambda cost: cost.cpu_s)

    def _blackhole(self, table: Table) -> str:
        """A new sink for the rows of a table."""
        self._sinks += 1
        types = table.get_schema().get_field_data_types()
        schema = Schema.new_builder().from_fields([f"f{at}" for at in range(len(types))], types).build()
        sink = TableDescriptor.for_connector("blackhole").schema(schema).build()
        self._environment.create_temporary_table(f"sink{self._sinks}", sink)
        return f"sink{self._sinks}"

    def _reading_cost(self, text: str) -> Cost:
        """The cost of reading the columns that a query reads, as its optimized plan says."""
        plan = self._environment.sql_query(text).explain().rpartition("== Optimized Execution Plan ==")[2]
        scans = set(re.findall(r"TableSourceScan\(table=\[\[\w+, \w+, (\w+).*?\]\], fields=\[([^\]]*)\]", plan))
        reads = tuple(sorted(f"SELECT `{fields.replace(', ', '`, `')}` FROM {table}" for table, fields in scans))
        if reads not in self._reading:
            self._reading[reads] = self._cost(*reads)
        return self._reading[reads]


def _plain(value: Any) -> Any:
    """Instants as text with milliseconds, other values as they are."""
    return value.isoformat(" ", "milliseconds") if isinstance(value, datetime) else value


def _reason(trace: str) -> str:
    """The innermost cause in the text of an error of Java."""
    lines = trace.strip().splitlines()
    causes = [line.partition(": ")[2] for line in lines if line.startswith(("Caused by: ", ": "))]
    return (causes or lines)[-1].strip()


def _processes() -> dict[int, tuple[int, float]]:
    """By process: its parent, and its CPU seconds so far."""
    ticks, found = os.sysconf("SC_CLK_TCK"), {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            found[int(folder.name)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / ticks
    return found


def _cpu_s() -> float:
    """CPU seconds of this process and of all that it has started."""
    found = _processes()
    family = {os.getpid()}
    while more := {process for process, (parent, _) in found.items() if parent in family} - family:
        family |= more
    return sum(found[process][1] for process in family)


def _resident_mb() -> int:
    """The peak memory of the largest process, which is the JVM."""
    peaks = [0]
    for process, (parent, _) in _processes().items():
        if parent == os.getpid():
            peaks += [int(size) // 1024 for size in re.findall(r"VmHWM:\s+(\d+)", _text(f"/proc/{process}/status"))]
    return max(peaks)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:  # it has ended
        return ""


if __name__ == "__main__":
    _work, _seconds = sys.argv[1], float(sys.argv[2])
    for _line in Peer(Path(os.environ["PEER_DATA"]) / _work, _seconds).results(_work):
        print(json.dumps(_line), flush=True)
