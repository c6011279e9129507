"""Architectures of fault tolerance side by side: what each claims, and what the same faults did to its results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from workbench.api.job.job import Job
from workbench.api.pictures.documents_table import documents_rows
from workbench.api.pictures.verdicts import sentences, verdicts_html, verdicts_page
from workbench.api.running.costs import Cost, cost_of
from workbench.api.running.faults_by_records import RecordFault
from workbench.api.running.lanes import LiveComparison
from workbench.api.running.spark_lane import cost_on_spark
from workbench.connectors.tables.table_sink import TableSink
from workbench.errors import JobError, SettingError
from workbench.plan.logical import Node
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.job.zombies import Woken

REFERENCE = "reference"
"""The lane without faults, whose results are the truth."""
_WINDOW = ("window_start", "window_end")


@dataclass(frozen=True, slots=True)
class Difference:
    """How a table differs from that of a run without faults.

    Attributes:
        lost: rows that it lacks; of windows and keys, those that it has no row for.
        doubled: rows that it has once more.
        too_low: by how much the first whole number of rows of the same window or key is too low, in total.
        too_high: by how much it is too high.
    """

    lost: int = 0
    doubled: int = 0
    too_low: int = 0
    too_high: int = 0

    def __add__(self, other: Difference) -> Difference:
        return Difference(*(a + b for a, b in zip(asdict(self).values(), asdict(other).values(), strict=True)))

    @property
    def observed(self) -> str:
        """The strongest guarantee that it agrees with; ``"none"``: something is lost and something doubled.

        Example:
            >>> [Difference().observed, Difference(doubled=3).observed, Difference(lost=2, too_high=1).observed]
            ['exactly-once', 'at-least-once', 'none']
        """
        low, high = self.lost + self.too_low, self.doubled + self.too_high
        if not low:
            return "at-least-once" if high else "exactly-once"
        return "none" if high else "at-most-once"


def difference(rows: pa.Table, truth: pa.Table, identity: Sequence[str] | None) -> Difference:
    """Compare a table with the truth.

    Args:
        rows: the table.
        truth: that of a run without faults, with the same columns.
        identity: the columns by which a row is found again, such as a key and a window; None: all.

    Example:
        >>> truth = pa.table({"k": ["a", "b", "c"], "n": [1, 2, 3]})
        >>> difference(pa.table({"k": ["a", "b"], "n": [1, 4]}), truth, ["k"])
        Difference(lost=1, doubled=0, too_low=0, too_high=2)
    """
    columns = list(truth.column_names if identity is None else identity)
    measure = _measure(truth, columns)
    ours, theirs = _grouped(rows, columns, measure), _grouped(truth, columns, measure)
    lost = doubled = low = high = 0
    for key in ours.keys() | theirs.keys():
        (count, total), (expected, right) = ours.get(key, (0, 0)), theirs.get(key, (0, 0))
        lost += max(0, expected - count)
        doubled += max(0, count - expected)
        if count == expected:
            low += max(0, right - total)
            high += max(0, total - right)
    return Difference(lost, doubled, low, high)


def file_for(path: str | Path) -> Path:
    """The file to which a comparison is to be saved.

    Raises:
        SettingError: nothing can be saved under that name.

    Example:
        >>> file_for("compared.html").name
        'compared.html'
    """
    target = Path(path)
    ends = (_PAGE, *_WRITERS)
    if target.suffix not in ends:
        raise SettingError(f"a comparison cannot be saved as {str(path)!r}: end the name with {', '.join(ends)}")
    return target


@dataclass(frozen=True, slots=True)
class Compared:
    """What one lane is run with.

    Attributes:
        policy: its architecture.
        woken: what tasks did that were replaced and woke up; filled while the job runs.
    """

    policy: FaultTolerance
    woken: Sequence[Woken] = ()


class ArchitectureComparison(LiveComparison):
    """Jobs of one pipeline under several architectures, with the same faults; made by `compare`.

    Source: the tables of D and E, in which architectures are compared by what their papers claim.

    Args:
        jobs: by lane; the first, ``reference``, has no faults.
        runs: by lane, what its job was run with.
        sinks: of the pipeline.
        faults: of all lanes but the first.

    Example:
        >>> clicks = wb.Stream.from_table(pa.table({"page": ["a", "b"] * 3_000}))
        >>> counts = clicks.key_by("page").aggregate(n=wb.count()).sink_to(wb.TableSink("n", upsert_key="page"))
        >>> both = wb.compare(counts, ["snapshots", "at-most-once"], faults="task-dies:at=3000")
        >>> both.wait("60s")["snapshots"], both.table().select(["architecture", "claimed"]).to_pydict()["claimed"]
        ('FINISHED', ['exactly-once', 'exactly-once', 'at-most-once'])
    """

    def __init__(
        self,
        jobs: Mapping[str, Job],
        runs: Mapping[str, Compared],
        sinks: Sequence[Node],
        faults: Sequence[RecordFault] = (),
    ) -> None:
        super().__init__(jobs)
        self._runs = dict(runs)
        self._faults = tuple(faults)
        self._tables = {node.spec.name: _identity(node) for node in sinks if isinstance(node.spec, TableSink)}

    def table(self) -> pa.Table:
        """A row for each lane: the guarantee that its architecture claims, the one observed, and what it cost.

        ``lost``, ``doubled``, ``too_low`` and ``too_high`` compare its tables with those of the lane without faults.
        ``records_again`` and ``recovery_ms`` are sums and means over the failures, ``p50_ms`` and ``p99_ms`` the median
        and the maximum of the percentiles over the run, and ``buffers`` those sent in the last attempt. For the other
        columns see `workbench.api.running.costs.Cost`.

        Raises:
            JobError: a job has not ended, or the pipeline has no TableSink to compare.
        """
        for lane, job in self.jobs.items():
            if not job.over:
                raise JobError(f"the lane {lane!r} has not ended: wait() for all, then compare their results")
        if not self._tables:
            raise JobError("the pipeline has no TableSink, so its results cannot be compared: add one")
        return pa.Table.from_pylist(list(self._rows()))

    def documents(self) -> pa.Table:
        """The table of the documents: a row for each architecture in their order, and for each of their columns what
        they claim (``latency_claimed``) and what was observed here (``latency_observed``).

        Raises:
            JobError: as for `table`.
        """
        return pa.Table.from_pylist(self._in_the_documents(self.table().to_pylist()))

    def _in_the_documents(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
        slow = any(fault.records for fault in self._faults)
        policies = {lane: run.policy.name for lane, run in self._runs.items()}
        return documents_rows(rows, policies, slow=slow)

    @property
    def verdicts(self) -> list[str]:
        """What the faults did under each architecture, a sentence each, and which of them did best.

        Raises:
            JobError: as for `table`.
        """
        return sentences(self.table().to_pylist())

    def save(self, path: str | Path) -> Path:
        """Write the comparison to a file: ``.html`` for sentences and both tables, ``.arrow`` or ``.parquet`` for
        `table`.

        Args:
            path: of the file; an existing one is replaced. The page needs no network.

        Raises:
            SettingError: another suffix, or the file cannot be written.
            JobError: as for `table`.
        """
        target = file_for(path)
        table = self.table()
        try:
            if target.suffix == _PAGE:
                rows = table.to_pylist()
                page = verdicts_page(rows, self._in_the_documents(rows), "Architectures of fault tolerance")
                target.write_text(page, encoding="utf-8")
            else:
                _WRITERS[target.suffix](table, target)
        except OSError as error:
            reason = error.strerror or str(error)
            raise SettingError(f"{str(path)!r} cannot be written: {reason}; name another folder") from error
        return target

    def __repr__(self) -> str:
        return "\n".join(self.verdicts) if self._can_be_compared else super().__repr__()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Any:
        """The lanes while they run; the verdicts once all have ended."""
        if not self._can_be_compared:
            return super()._repr_mimebundle_(include, exclude)
        rows = self.table().to_pylist()
        return {"text/html": verdicts_html(rows, self._in_the_documents(rows)), "text/plain": repr(self)}

    @property
    def _can_be_compared(self) -> bool:
        return bool(self._tables) and all(job.over for job in self.jobs.values())

    def _cost(self, lane: str, job: Any, records: int) -> Cost:
        if job.engine == "spark":
            return cost_on_spark(job, records)
        return cost_of(job, records, self._runs[lane].woken)

    def _rows(self) -> Iterator[dict[str, Any]]:
        records = int(self.jobs[REFERENCE].status()["records_in"])
        truth = {name: self.jobs[REFERENCE].table(name) for name in self._tables}
        for lane, job in self.jobs.items():
            found = Difference()
            for name, identity in self._tables.items():
                found += difference(job.table(name), truth[name], identity)
            yield {
                "architecture": lane,
                "claimed": self._runs[lane].policy.guarantee,
                "observed": found.observed,
                **asdict(found),
                "records": records,
                **asdict(self._cost(lane, job, records)),
            }


def _write_arrow(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _write_parquet(table: pa.Table, path: Path) -> None:
    parquet.write_table(table, path)


_PAGE = ".html"
_WRITERS = {".arrow": _write_arrow, ".parquet": _write_parquet}
"""By the end of the file's name."""


def _identity(sink: Node) -> list[str] | None:
    """The columns by which a row of the sink is found again; None: all."""
    spec: Any = sink.spec
    if spec.upsert_key:
        return list(spec.upsert_key)
    windows = [name for name in _WINDOW if name in sink.schema.names]
    node = sink
    keys: tuple[str, ...] = ()
    while windows and not keys and len(node.inputs) == 1:
        keys = node.inputs[0].keys
        node = node.inputs[0].node
    return [*(key for key in keys if key in sink.schema.names), *windows] if windows else None


def _measure(truth: pa.Table, identity: Sequence[str]) -> str | None:
    """The first whole number that is not part of the identity."""
    kinds = zip(truth.column_names, truth.schema.types, strict=True)
    return next((name for name, kind in kinds if name not in identity and pa.types.is_integer(kind)), None)


def _grouped(rows: pa.Table, columns: list[str], measure: str | None) -> dict[tuple[object, ...], tuple[int, int]]:
    """For each identity: its rows, and the sum of their measure."""
    sums = [] if measure is None else [(measure, "sum")]
    rows = pa.table({name: _comparable(rows[name]) if name in columns else rows[name] for name in rows.column_names})
    found = rows.group_by(columns).aggregate([([], "count_all"), *sums])
    keys = zip(*(found[name].to_pylist() for name in columns), strict=True)
    counts = found["count_all"].to_pylist()
    totals = [0] * len(counts) if measure is None else pc.fill_null(found[f"{measure}_sum"], 0).to_pylist()
    return dict(zip(keys, zip(counts, totals, strict=True), strict=True))


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values that Arrow can group and that equal each other where they are the same: no NaN, which differs from itself,
    no list or struct, and one dictionary for all rows."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _comparable(column.cast(kind.value_type))
    if pa.types.is_floating(kind) or pa.types.is_nested(kind):
        return pa.chunked_array([pa.array([None if value is None else repr(value) for value in column.to_pylist()])])
    return column
