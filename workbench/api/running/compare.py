"""Comparison of jobs: two stepping jobs at one moment, live jobs, settings, or architectures of fault tolerance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

from workbench.api.job.comparing import compare_steps
from workbench.api.job.job import Job
from workbench.api.job.repeating import beside
from workbench.api.pictures.scene_view import Comparison
from workbench.api.running.architectures_compared import REFERENCE, ArchitectureComparison, Compared
from workbench.api.running.faults_by_records import RecordFault, parse_faults, with_faults
from workbench.api.running.lanes import LiveComparison
from workbench.api.running.pipeline import Pipeline
from workbench.api.running.spark_lane import POLICY, SPARK, start_spark_lane
from workbench.arguments import as_given
from workbench.connectors.tables.table_sink import TableSink
from workbench.errors import JobError, SettingError, WorkbenchError
from workbench.runtime.job.zombies import Woken
from workbench.runtime.settings.architecture import SNAPSHOTS, parse_architecture
from workbench.runtime.settings.settings import Settings
from workbench.runtime.storage import check_name

FaultsLike = str | RecordFault | Sequence[str | RecordFault] | None


@overload
def compare(
    pipeline: Any,
    architectures: list[Any] | tuple[Any, ...],
    /,
    *,
    name: str | None = None,
    faults: FaultsLike = None,
    **settings: Any,
) -> ArchitectureComparison: ...
@overload
def compare(pipeline: Any, /, *, name: str | None = None, **lanes: Any) -> LiveComparison: ...
@overload
def compare(job: Job, other: Job, /, *more: Job) -> Comparison | LiveComparison: ...
def compare(
    *what: Any, name: str | None = None, faults: FaultsLike = None, **lanes: Any
) -> Comparison | LiveComparison | ArchitectureComparison:
    """Compare jobs side by side: run a pipeline with several settings or architectures, or show jobs that there are.

    With a pipeline it runs one job for each lane, all at the same time. A lane is a name and what its job is run with:
    settings, or any other argument of `Pipeline.run`. With two stepping jobs it shows both moments and a table of what
    differs; with live jobs, what they do now.

    With a pipeline and a list of architectures, each is a lane, beside one without faults whose results are the truth.
    The same faults happen to each at the same record, and ``table()`` tells what each claims and what was observed.
    ``"spark"`` in the list is Spark itself, with the settings that it has; what it does not measure is null.

    With a job in place of the pipeline, the job's pipeline runs from its beginning, with the job's settings; the job
    itself is left alone.

    Source: E4 and E10, what-if: one pipeline with two settings, or two versions from one moment; the tables of D and E,
    which compare architectures.

    Args:
        what: a pipeline or stream, and for architectures a list of them, as for ``run(fault_tolerance=...)``, or
            instead of the pipeline a job; or two jobs or more, for example one and its `Stepper.fork`.
        name: what the names of the lanes' jobs begin with: ``"compared-a"``, or of a job's architectures
            ``"delays-acks"``.
        faults: with architectures: ``"task-dies:at=10000"``, ``"slow-receiver:at=10000,records=10000,rest=500ms"``,
            ``"zombie:at=10000,wakes=5000"`` or a list of such; records are those of the first subtask of the first
            source, or of the first sink.
        **lanes: what the job of each lane is run with, such as ``a={"buffer_timeout": "50ms"}``; with architectures,
            settings of all of them, such as ``checkpoint_interval="1s"``.

    Raises:
        JobError: no pipeline and no jobs, a stepping job with a live one, or a job whose pipeline cannot run a second
            time, because it writes outside the job or its source cannot be read again.
        SettingError: fewer than two lanes, or an invalid setting or fault; no job is left running then.

    Example:
        >>> numbers = wb.Stream.from_table(pa.table({"n": [1, 2, 3]}))
        >>> job = numbers.sink_to(wb.TableSink("n")).run("left", driver="stepping", buffer_size=1)
        >>> other = job.stepper.fork(name="right", buffer_timeout="5ms")
        >>> print(wb.compare(job, other))
        left | right
        setting buffer_timeout: 100ms | 5ms
        steps: 0 | 1
        >>> job.cancel(); other.cancel()
    """
    begins = bool(what) and hasattr(what[0], "run") and not isinstance(what[0], Job)
    if len(what) == 2 and isinstance(what[1], list | tuple) and (begins or isinstance(what[0], Job)):
        pipeline, settings = what[0], lanes
        if not begins:
            pipeline, own = beside(what[0]._run)
            settings = {**own, **lanes}
        named = name or ("compared" if begins else what[0].name)
        return _compare_architectures(pipeline, what[1], faults, named, settings)
    if faults is not None:
        raise SettingError(
            "faults are for architectures: compare(pipeline, ['snapshots', 'at-most-once'], faults='task-dies')"
        )
    if begins and len(what) == 1:
        return LiveComparison(_run(what[0], name or "compared", lanes))
    for job in what:
        if getattr(job, "engine", "") == "spark":
            raise JobError("a job on Spark cannot be compared: run its pipeline in the kernel")
        if not isinstance(job, Job):
            raise JobError(
                f"compare got {as_given(job)}, which is not a job: pass two jobs, such as wb.job('a'), wb.job('b')"
            )
    if len(what) < 2 or lanes:
        raise JobError(
            "compare needs a pipeline with lanes, such as compare(pipeline, a={}, b={'buffer_timeout': '0ms'}), or "
            "two jobs"
        )
    if not any(job.live for job in what) and len(what) == 2:
        return compare_steps(*what)
    if not all(job.live for job in what):
        raise JobError("compare shows two stepping jobs, or live ones: a stepping job stands still beside a live one")
    return LiveComparison({job.name: job for job in what})


def _compare_architectures(
    stream: Any, architectures: Sequence[Any], faults: FaultsLike, name: str, settings: Mapping[str, Any]
) -> ArchitectureComparison:
    if not architectures:
        raise SettingError("compare got no architecture: list some, such as ['snapshots', wb.changelog()]")
    found = parse_faults(faults)
    sinks = (stream if isinstance(stream, Pipeline) else stream.sink_to(TableSink("results")))._sinks
    lanes: dict[str, Any] = {REFERENCE: None}
    for architecture in architectures:
        on_spark = isinstance(architecture, str) and architecture.lower() == SPARK
        policy = POLICY if on_spark else parse_architecture(architecture, "fault_tolerance")
        base = lane = SNAPSHOTS if policy is None else policy.name
        number = 1
        while lane in lanes:
            number += 1
            lane = f"{base}-{number}"
        lanes[lane] = policy
    options = {lane: {**settings, "fault_tolerance": policy} for lane, policy in lanes.items()}
    policies = {
        lane: POLICY if policy is POLICY else Settings().with_value("fault_tolerance", policy).policy
        for lane, policy in lanes.items()
    }
    woken: dict[str, list[Woken]] = {lane: [] for lane in policies}
    unchanged = {lane for lane, policy in policies.items() if lane == REFERENCE or policy is POLICY}
    pipelines = {
        lane: Pipeline(
            sinks if lane in unchanged else with_faults(sinks, found, replays=policy.replays, woken=woken[lane])
        )
        for lane, policy in policies.items()
    }
    runs = {lane: Compared(policy, woken[lane]) for lane, policy in policies.items()}
    return ArchitectureComparison(_run(pipelines, name, options, found), runs, sinks, found)


def _run(
    pipeline: Any, name: str, lanes: Mapping[str, Mapping[str, Any]], faults: Sequence[RecordFault] = ()
) -> dict[str, Job]:
    """One job for each lane; none where one of them cannot be started. On Spark the faults happen without probes."""
    if len(lanes) < 2:
        raise SettingError(f"compare got {len(lanes)} lanes: give two or more, a={{...}}, b={{...}}")
    for lane, options in lanes.items():
        if not isinstance(options, Mapping):
            raise SettingError(f"the lane {lane!r} is {as_given(options)}: give its settings, {lane}={{...}}")
        check_name(f"{name}-{lane}", "job name")
    jobs: dict[str, Job] = {}
    try:
        for lane, options in lanes.items():
            of_lane = pipeline[lane] if isinstance(pipeline, dict) else pipeline
            if options.get("fault_tolerance") is POLICY:
                jobs[lane] = start_spark_lane(of_lane, f"{name}-{lane}", options, faults)
            else:
                jobs[lane] = of_lane.run(f"{name}-{lane}", **options)
    except WorkbenchError:
        for job in jobs.values():
            job.cancel()
        raise
    return jobs
