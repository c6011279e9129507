"""Pipelines: one or more streams that end in sinks, ready to run as one job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

from workbench.api.job.job import Job
from workbench.api.launching.launch import start_job
from workbench.api.pictures.plan_view import PlanView
from workbench.arguments import true_or_false
from workbench.connectors.contract.base import Guarantee
from workbench.plan.logical import LogicalGraph, Node
from workbench.plan.physical import build_physical_graph
from workbench.plan.slots import SLOTS_PER_TASKMANAGER
from workbench.runtime.settings.restart_strategies import RestartStrategy
from workbench.runtime.settings.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")


def with_the_settings_of(
    run: Callable[Concatenate[Any, P], R],
) -> Callable[[Callable[..., R]], Callable[Concatenate[Any, P], R]]:
    """Tell type checkers and editors that a method takes the arguments of another one; neither is changed.

    Example:
        >>> with_the_settings_of(Pipeline.run)(print) is print
        True
    """
    return lambda method: method


class Pipeline:
    """What `Stream.sink_to` gives; add pipelines to run several sinks as one job.

    Source: F2-1; Flink's ``StreamExecutionEnvironment``, as far as it starts jobs.

    Example:
        >>> numbers = wb.Stream.from_table(pa.table({"n": [1, 2]}))
        >>> both = numbers.sink_to(wb.TableSink("all")) + numbers.filter("n > 1").sink_to(wb.TableSink("large"))
        >>> job = both.run("both", parallelism=2)
        >>> job.wait("60s"), len(job.table("all")), len(job.table("large"))
        ('FINISHED', 2, 1)
    """

    def __init__(self, sinks: tuple[Node, ...]) -> None:
        self._sinks = sinks

    def __add__(self, other: Pipeline) -> Pipeline:
        return Pipeline(self._sinks + other._sinks)

    def logical_graph(self) -> LogicalGraph:
        """The operators and what feeds them (F1-1).

        Example:
            >>> pipeline = wb.Stream.from_table(pa.table({"n": [1]})).filter("n > 0").sink_to(wb.DiscardSink())
            >>> [node.role for node in pipeline.logical_graph().nodes]
            ['source', 'operator', 'sink']
        """
        return LogicalGraph.collect(self._sinks)

    def __repr__(self) -> str:
        graph = self.logical_graph()
        return "Pipeline: " + " -> ".join(graph.uids[node] for node in graph.nodes)

    def _repr_html_(self) -> str:
        return self.explain().svg

    def explain(
        self,
        parallelism: int = 1,
        *,
        max_parallelism: int | None = None,
        slots_per_taskmanager: int = SLOTS_PER_TASKMANAGER,
    ) -> PlanView:
        """What would run where: the physical graph as a picture, as text and as data; nothing runs.

        Source: F1-2, F2-2.

        Args:
            parallelism: subtasks of every operator.
            max_parallelism: number of key groups; None: by the parallelism, see `run`.
            slots_per_taskmanager: slots of one TaskManager.

        Raises:
            PlanError: the pipeline cannot run at this parallelism.
            SettingError: a number that is not above zero.

        Example:
            >>> counts = wb.Stream.from_table(pa.table({"k": ["a"]})).key_by("k").aggregate(n=wb.count())
            >>> plan = counts.sink_to(wb.DiscardSink()).explain(parallelism=4)
            >>> plan.channels  # each of four senders has one to each of four receivers (F2-3)
            16
            >>> sorted(plan.slots)
            ['tm-0/slot-0', 'tm-0/slot-1', 'tm-1/slot-0', 'tm-1/slot-1']
        """
        settings = Settings().with_value("slots_per_taskmanager", slots_per_taskmanager)
        settings = settings.with_value("parallelism", parallelism)
        groups = settings.with_value("max_parallelism", max_parallelism).max_parallelism
        graph = build_physical_graph(
            self.logical_graph(), settings.parallelism, settings.slots_per_taskmanager, max_parallelism=groups
        )
        return PlanView(graph, "pipeline", settings)

    def run(
        self,
        name: str = "job",
        *,
        parallelism: int = 1,
        max_parallelism: int | None = None,
        buffer_timeout: str | None = "100ms",
        buffer_size: int = 262_144,
        checkpoint_interval: str | None = "5s",
        checkpoint_mode: str = "exactly-once",
        aligned_checkpoint_timeout: str | None = None,
        checkpoint_timeout: str = "10min",
        min_pause: str = "0ms",
        max_concurrent_checkpoints: int = 1,
        tolerable_failed_checkpoints: int | None = None,
        speed: str | float | None = None,
        checkpoint_dir: str | Path | None = None,
        resume: bool = False,
        restore: str | Path | None = None,
        allow_non_restored_state: bool = False,
        standby: bool = False,
        retained_checkpoints: int = 3,
        restart: RestartStrategy | str | None = None,
        incremental: bool = True,
        slots_per_taskmanager: int = SLOTS_PER_TASKMANAGER,
        local_aggregation: bool = True,
        guarantee: Guarantee | None = None,
        driver: Literal["live", "stepping"] = "live",
        replace: bool = False,
    ) -> Job:
        """Run it as a job in this process; returns at once.

        Source: F2-1; E4 for the buffer timeout, D1 for the guarantee.

        Args:
            name: of the job, one at a time.
            parallelism: subtasks of every operator.
            max_parallelism: number of key groups, at most 32768: to how many subtasks an operator can be rescaled.
                None: as many as the checkpoint or savepoint has that is restored, or else Flink's default for the
                operator with the most subtasks: a power of two that leaves room for half as many again, at least 128.
                With another number than it has, a savepoint's keyed state is dealt anew.
            buffer_timeout: a record waits at most about so long for its buffer to fill and to reach the next task;
                ``"0ms"``: nothing waits; None or ``"disabled"``: a buffer ships only when it is full.
            buffer_size: records in a full buffer, at most; a channel with little traffic has smaller ones.
            checkpoint_interval: time between checkpoints, such as ``"5s"``; None or ``"disabled"``: only the final one.
            checkpoint_mode: ``"exactly-once"``: barriers are aligned; ``"at-least-once"``: nothing waits for a barrier,
                and after a failure some records are counted twice (see `Job.audit`); ``"unaligned"``: barriers overtake
                what is in flight, which becomes part of the checkpoint; ``"stop-the-world"``: the sources read nothing
                while a checkpoint is taken; or the name of a policy of your own (see `register_fault_tolerance`).
                Savepoints and the last checkpoint of a job are always aligned.
            aligned_checkpoint_timeout: an aligned checkpoint that takes longer, such as ``"2s"``, goes on unaligned;
                None: it never does.
            checkpoint_timeout: a checkpoint that takes longer, such as ``"10min"``, is given up.
            min_pause: between the end of a checkpoint and the next periodic one; it also makes them come one at a time.
            max_concurrent_checkpoints: that may be in progress; some modes take one.
            tolerable_failed_checkpoints: checkpoints in a row that may fail before the job does; None: any number.
            speed: seconds of a replayed history per second (``"600x"``) or ``"max"``, from its first record on; None:
                as the stream says.
            checkpoint_dir: where checkpoints are kept, a path or a URI such as ``"s3://bucket/prefix"``; without it
                they live in memory, so the job recovers from a failed task but not from the end of the process.
            resume: continue from the latest complete checkpoint of `checkpoint_dir` (start afresh where there is
                none); without it a directory that holds checkpoints is refused.
            restore: start from this savepoint instead: its name in `checkpoint_dir`, or the folder of a savepoint or
                checkpoint of any job, which is copied to `checkpoint_dir` and not changed. The pipeline may be another
                one: state goes to the operators of the same uid.
            standby: when another process holds `checkpoint_dir`, wait in state SUSPENDED until it has ended or died,
                then continue at once from the latest complete checkpoint (F2-16); the same pipeline runs in both.
            allow_non_restored_state: drop state that no operator of this pipeline takes, instead of refusing it.
            retained_checkpoints: complete checkpoints that are kept.
            restart: whether and when it starts again after a failure: `fixed_delay`, `exponential_delay`,
                `failure_rate`, `no_restart`, or one of them as text, ``"fixed-delay:attempts=3,delay=1s"``. None: three
                times, after 100 ms each, and failures that a person injects do not count.
            incremental: write what has changed in large tables of state since the latest checkpoint, not all of it;
                this keeps a second copy of them in memory.
            slots_per_taskmanager: slots of one TaskManager, which fail together.
            local_aggregation: aggregate large batches before they travel to a tumbling window, where that makes them
                much smaller; results are the same. False: every record travels.
            guarantee: what must hold end to end, ``"exactly-once"`` or ``"at-least-once"``; a pipeline with a source or
                sink that cannot keep it is refused.
            driver: ``"live"`` runs it on threads; with ``"stepping"`` it goes on only when `Job.step` says so.
            replace: stop a running job of this name first, as `Job.stop` does. What can refuse this run is checked
                before: the running job goes on then.

        Raises:
            SettingError: a setting that cannot be.
            PlanError: the pipeline cannot run, or cannot keep the guarantee.
            SinkError: a sink's folder holds rows of another run.
            SourceError: what is to be read is not there.
            JobError: a job of that name is running, or has not stopped within half a minute to be replaced.
            CheckpointError: the checkpoint directory cannot be used, is in use, or already holds checkpoints; or what
                is to be restored does not fit this pipeline.

        Example:
            >>> pipeline = wb.Stream.from_table(pa.table({"n": [1, 2]})).sink_to(wb.TableSink("numbers"))
            >>> job = pipeline.run("numbers", parallelism=2, buffer_timeout="5ms", checkpoint_interval="1s")
            >>> job.wait("60s"), len(job.table())
            ('FINISHED', 2)
        """
        settings: dict[str, object] = {
            "parallelism": parallelism,
            "max_parallelism": max_parallelism,
            "buffer_timeout": buffer_timeout,
            "buffer_size": buffer_size,
            "checkpoint_interval": checkpoint_interval,
            "checkpoint_mode": checkpoint_mode,
            "aligned_checkpoint_timeout": aligned_checkpoint_timeout,
            "checkpoint_timeout": checkpoint_timeout,
            "min_pause": min_pause,
            "max_concurrent_checkpoints": max_concurrent_checkpoints,
            "tolerable_failed_checkpoints": tolerable_failed_checkpoints,
            "retained_checkpoints": retained_checkpoints,
            "speed": speed,
            "slots_per_taskmanager": slots_per_taskmanager,
            "local_aggregation": local_aggregation,
        }
        if restart is not None:
            settings["restart"] = restart
        return start_job(
            self,
            name,
            settings,
            checkpoint_dir=checkpoint_dir,
            resume=true_or_false(resume, "resume"),
            restore=restore,
            incremental=true_or_false(incremental, "incremental"),
            allow_non_restored_state=true_or_false(allow_non_restored_state, "allow_non_restored_state"),
            standby=true_or_false(standby, "standby"),
            guarantee=guarantee,
            driver=driver,
            replace=true_or_false(replace, "replace"),
        )
