"""The Streaming Workbench: a Flink-like streaming runtime in the notebook's own kernel, to see, to touch and to trust.

The map of what is exported:

* histories: `History` (written by Spark, replayed without), `datasets`;
* streams: `Stream`, and the `KeyedStream` and `WindowedStream` that it turns into;
* event time: `INGESTION`, `monotonous`, `punctuated`, `WatermarkGenerator`;
* columns: `col`, `lit`, `expr`, `when`, `coalesce`;
* keyed functions: `ProcessFunction`, its `ProcessContext` and `State`; what state they declare: `ValueState`,
  `ListState`, `MapState`, `ReducingState`, `AggregatingState`;
* two streams: `ConnectedStreams`, `CoProcessFunction` with its `ConnectedContext`, `BroadcastState`;
* windows: `tumbling`, `sliding`, `session`, `count_tumbling`, `count_sliding`, `global_window`, or a `WindowAssigner`
  of your own; functions see each as a `Window`;
* when windows fire: `on_event_time`, `on_processing_time`, `on_count`, `early`, `purging`, or a `Trigger` of your own
  with its `TriggerContext` and `Action`; what they keep: `keep_last`, `keep_since`, or an `Evictor`;
* aggregates: `count`, `sum`, `min`, `max`, `mean`, and in windows `median`, `top_k`, `collect`;
* sinks: `TableSink`, `ParquetSink`, `FileSink`, `SqlSink`, `CallbackSink`, `PrintSink`, `DiscardSink`;
* when a failed job starts again: `fixed_delay`, `exponential_delay`, `failure_rate`, `no_restart`;
* jobs: `Pipeline`, `Job`, `job`, `jobs`, `serve` (their dashboards without a notebook), and `SETTINGS`, the names of
  what can be tuned live; `found_jobs` of earlier processes, each a `FoundJob`;
* what is kept of jobs: `savepoints`, `delete_savepoint`, and `Snapshot`, which opens one to be looked at;
* errors: `WorkbenchError` is the base of all.

In a notebook ``%load_ext workbench`` adds ``%%stream`` and ``%stream``.

Example::

    import workbench as wb
    from workbench import col

    flights = wb.Stream.replay(history, speed="3600x", out_of_orderness="24h")
    delays = (flights.filter("dep_delay IS NOT NULL")
        .key_by("origin").window(wb.tumbling("1h"))
        .aggregate(flights=wb.count(), mean_delay=wb.mean("dep_delay")))
    job = delays.sink_to(wb.TableSink("delays")).run("delays", parallelism=2)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.public import *  # noqa: F403

__version__ = "0.1.0"

_HOOKS = ("load_ipython_extension", "unload_ipython_extension")


def __dir__() -> list[str]:
    """What is for users: completion shows this and not the packages behind it."""
    return [*_exported(), "__version__"]


def load_ipython_extension(ipython: Any) -> None:
    """Called by ``%load_ext workbench``: adds the magics and opens the way for the sidebar."""
    import_module("workbench.jupyter").load_ipython_extension(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """Called by ``%unload_ext workbench``."""
    import_module("workbench.jupyter").unload_ipython_extension(ipython)


if not TYPE_CHECKING:  # a type checker would take any name to be there

    def __getattr__(name: str) -> Any:
        """An exported name, imported when it is first asked for."""
        if name == "__all__":
            return _exported()
        if not name.startswith("__"):
            public = import_module("workbench.public")
            if name in public.__all__:
                globals()[name] = getattr(public, name)
            if name in globals():  # or a package of ours that came along with what is exported
                return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _exported() -> list[str]:
    return [*import_module("workbench.public").__all__, *_HOOKS]
