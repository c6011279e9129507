"""Pipelines: one or more streams that end in sinks, ready to run as one job.

What runs a pipeline is imported by the first `run`: a program that builds a graph does not need it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, Unpack, get_args, overload

from workbench.errors import SettingError, unknown
from workbench.packages import needed
from workbench.plan.logical import LogicalGraph, Node
from workbench.plan.slots import SLOTS_PER_TASKMANAGER
from workbench.runtime.settings.setting import with_settings
from workbench.runtime.settings.settings import Settings
from workbench.runtime.settings.table import OF_RUN, RunSettings

if TYPE_CHECKING:
    from workbench.api.job.job import Job
    from workbench.api.pictures.plan_view import PlanView

Engine = Literal["kernel", "spark"]
"""Where a pipeline runs."""
ENGINES: tuple[str, ...] = get_args(Engine)
P = ParamSpec("P")
R = TypeVar("R")


def with_the_settings_of(
    run: Callable[Concatenate[Any, P], R],
) -> Callable[[Callable[..., R]], Callable[Concatenate[Any, P], R]]:
    """Tell type checkers and editors that a method takes the arguments of another one; neither changes at run time.

    Example:
        >>> with_the_settings_of(Pipeline.run)(print) is print
        True
    """
    return lambda method: method


def on_spark(engine: str) -> bool:
    """Whether an engine is Spark.

    Raises:
        SettingError: there is no such engine.

    Example:
        >>> on_spark("kernel")
        False
    """
    if engine not in ENGINES:
        raise SettingError(unknown("engine", engine, ENGINES))
    return engine == "spark"


class Pipeline:
    """One or more streams that end in sinks, made by `Stream.sink_to`; add pipelines to run several sinks as one job.

    Source: F2-1; the part of Flink's ``StreamExecutionEnvironment`` that starts jobs.

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
        """The operators and their inputs (F1-1).

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

    @overload
    def explain(
        self,
        parallelism: int = ...,
        *,
        max_parallelism: int | None = ...,
        slots_per_taskmanager: int = ...,
        engine: Literal["kernel"] = ...,
    ) -> PlanView: ...

    @overload
    def explain(
        self,
        parallelism: int = ...,
        *,
        max_parallelism: int | None = ...,
        slots_per_taskmanager: int = ...,
        engine: Literal["spark"],
    ) -> Any: ...

    def explain(
        self,
        parallelism: int = 1,
        *,
        max_parallelism: int | None = None,
        slots_per_taskmanager: int = SLOTS_PER_TASKMANAGER,
        engine: Engine = "kernel",
    ) -> Any:
        """Show what would run where, without running it: the physical graph as a picture, as text and as data.

        Source: F1-2, F2-2.

        Args:
            parallelism: subtasks of every operator.
            max_parallelism: number of key groups; None: depends on the parallelism, see `run`.
            slots_per_taskmanager: slots of one TaskManager.
            engine: with ``"spark"``, the tier of each operator on Spark: native, carried, or refused with the reason.

        Returns:
            A `PlanView`; for Spark a table of the operators and their tiers.

        Raises:
            PlanError: the pipeline cannot run at this parallelism.
            SettingError: a number that is not above zero, or no such engine.

        Example:
            >>> counts = wb.Stream.from_table(pa.table({"k": ["a"]})).key_by("k").aggregate(n=wb.count())
            >>> plan = counts.sink_to(wb.DiscardSink()).explain(parallelism=4)
            >>> plan.channels  # each of four senders has one to each of four receivers (F2-3)
            16
            >>> sorted(plan.slots)
            ['tm-0/slot-0', 'tm-0/slot-1', 'tm-1/slot-0', 'tm-1/slot-1']
        """
        if on_spark(engine):
            return needed("workbench.spark.engine.tiers", "Spark").tiers(self.logical_graph())
        from workbench.api.pictures.plan_view import PlanView
        from workbench.plan.physical import build_physical_graph

        settings = Settings().with_values(
            {
                "slots_per_taskmanager": slots_per_taskmanager,
                "parallelism": parallelism,
                "max_parallelism": max_parallelism,
            }
        )
        graph = build_physical_graph(
            self.logical_graph(),
            settings.parallelism,
            settings.slots_per_taskmanager,
            max_parallelism=settings.max_parallelism,
        )
        return PlanView(graph, "pipeline", settings)

    @with_settings(OF_RUN, RunSettings)
    def run(
        self,
        name: str = "job",
        *,
        checkpoint_dir: str | Path | None = None,
        resume: bool = False,
        restore: str | Path | None = None,
        allow_non_restored_state: bool = False,
        standby: bool = False,
        incremental: bool = True,
        driver: Literal["live", "stepping"] = "live",
        replace: bool = False,
        engine: Engine = "kernel",
        spark: object | None = None,
        **settings: Unpack[RunSettings],
    ) -> Job:
        """Run it as a job in this process; returns immediately.

        Source: F2-1; E4 for the buffer timeout, D1 for the guarantee.

        Args:
            name: of the job, one at a time.
            checkpoint_dir: where checkpoints are kept, a path or a URI such as ``"s3://bucket/prefix"``; without it
                they are in memory, so the job recovers from a failed task but not from the end of the process.
            resume: continue from the latest complete checkpoint of `checkpoint_dir` (start without one if there is
                none). Without `resume` and `restore` the job starts from the beginning: checkpoints in the directory
                are set aside in its folder ``earlier`` if they are of a job of this name that has read all of its
                input; otherwise they are rejected.
            restore: start from this savepoint instead: its name in `checkpoint_dir`, or the folder of a savepoint or
                checkpoint of any job, which is copied to `checkpoint_dir` and not changed. The pipeline may be another
                one: state goes to the operators with the same uid.
            standby: if another process owns `checkpoint_dir`, wait in state SUSPENDED until it has ended or died, then
                continue from the latest complete checkpoint (F2-16); the same pipeline runs in both.
            allow_non_restored_state: drop state that no operator of this pipeline takes, instead of raising an error.
            incremental: write the changes of large tables of state since the latest checkpoint, not all of it; this
                keeps a second copy of them in memory.
            driver: ``"live"`` runs it on threads; with ``"stepping"`` it advances only when `Job.stepper` takes steps.
            replace: stop a running job of this name first, as `Job.stop` does, and set its checkpoints aside however
                it has ended. Everything that can reject this run is checked before: then the running job continues.
            engine: ``"kernel"``: in this process. ``"spark"``: on Spark Structured Streaming, with the same results;
                the handle has the same verbs where Spark has them. See `explain`.
            spark: for ``engine="spark"``: a session of classic PySpark, or a master URL such as
                ``"local-cluster[2,1,1024]"``; None: a local one.
            **settings: by name, such as ``buffer_timeout="50ms"``.

        Raises:
            SettingError: an invalid setting.
            PlanError: the pipeline cannot run, or cannot keep the guarantee.
            SinkError: a sink's folder holds rows of another run.
            SourceError: the input does not exist.
            JobError: a job of that name is running, or has not stopped within half a minute to be replaced.
            CheckpointError: the checkpoint directory cannot be used, is in use, or already holds checkpoints that are
                not set aside; or the state to restore does not fit this pipeline.

        Example:
            >>> pipeline = wb.Stream.from_table(pa.table({"n": [1, 2]})).sink_to(wb.TableSink("numbers"))
            >>> job = pipeline.run("numbers", parallelism=2, buffer_timeout="5ms", checkpoint_interval="1s")
            >>> job.wait("60s"), len(job.table())
            ('FINISHED', 2)
        """
        from workbench.api.running.order_notice import tell_order

        if on_spark(engine):
            beginning = {
                "restore": restore is not None,
                "allow_non_restored_state": allow_non_restored_state,
                "standby": standby,
                "incremental": not incremental,
                "driver": driver != "live",
            }
            if wrong := [word for word, is_given in beginning.items() if is_given]:
                raise SettingError(f"{wrong[0]} cannot be set with engine='spark': leave it out")
            launch = needed("workbench.spark.jobs.launch", "Spark")
            job: Job = launch.start_on_spark(
                self,
                name,
                settings,
                spark=spark,
                checkpoint_dir=checkpoint_dir,
                resume=resume,
                replace=replace,
            )
            tell_order(self.logical_graph(), settings)
            return job
        if spark is not None:
            raise SettingError("spark is given, but the engine is 'kernel': add engine='spark'")
        from workbench.api.launching.launch import start_job
        from workbench.api.launching.refusals import RunRequest

        job = start_job(
            RunRequest(
                self,
                name,
                {**{name: each.default for name, each in OF_RUN.items()}, **settings},
                checkpoint_dir,
                resume,
                restore,
                allow_non_restored_state,
                standby,
                incremental,
                driver,
                replace,
            )
        )
        tell_order(self.logical_graph(), settings)
        return job
