"""The Streaming Workbench: a Flink-like streaming runtime in the notebook's own kernel.

The map of what is exported:

* streams and histories: `Stream`; `History` (written by Spark, replayed without);
* sources for `Stream.from_source`: `KafkaSource`, `RedisSource`, `SqlSource`, `ServerEventSource`, `WebSocketSource`,
`MqttSource`, `NatsSource`;
* tables for look-ups: `SqlLookup`, `RedisLookup`;
* columns: `col`, `lit`, `expr`, `when`, `coalesce`;
* aggregates: `count`, `sum`, `min`, `max`, `mean`, and in windows `median`, `top_k`, `collect_list`;
* windows: `tumbling`, `sliding`, `session`; other windows and evictors: `windows`; when windows fire: `triggers`;
* queries: `sql`;
* event time: `watermarks`;
* functions with state: `functions`, and the state that they declare: `state`;
* sinks: `TableSink`, `ParquetSink`, `FileSink`, `SqlSink`, `KafkaSink`, `RedisSink`, `NatsSink`, `CallbackSink`,
  `PrintSink`, `DiscardSink`;
* jobs: `job`, `jobs`, `compare`, `serve` (their dashboards without a notebook), and `SETTINGS`, the settings that can
    be tuned live; restart strategies: `restart`; custom checkpoint modes: `policies`; fault-tolerance architectures
    other than snapshots: `acks`, `changelog`, `stop_the_world`, `at_most_once`, `transactions`, `micro_batches`;
* the course: `lesson`;
* streaming queries written in plain PySpark: `watch`;
* stored data of jobs: `found_jobs` of earlier processes, `savepoints`, `delete_savepoint`, `Snapshot`, which opens a
    savepoint for inspection, and `Recording`;
* `errors`, with the base class ``errors.WorkbenchError``, and `types` for annotations.

In a notebook ``%load_ext workbench`` adds ``%%stream``, ``%%stream_sql`` and ``%stream``; the sidebar needs only the
import.

Example::

    import workbench as wb
    from workbench import col

    flights = wb.Stream.replay(history, speed="3600x", out_of_orderness="24h")
    delays = (flights.filter("dep_delay IS NOT NULL")
        .key_by("origin").window(wb.tumbling("1h"))
        .aggregate(flights=wb.count(), mean_delay=wb.mean("dep_delay")))
    job = delays.sink_to(wb.TableSink("delays")).run("delays", parallelism=2)
"""

import gc
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.front_ends import admit_front_ends

if TYPE_CHECKING:
    from workbench.public.names import *  # noqa: F403

__version__ = "0.1.0"

_HOOKS = ("load_ipython_extension", "unload_ipython_extension")


def __dir__() -> list[str]:
    """The public names: completion shows these and not the packages behind them."""
    return [*_exported(), "__version__"]


def load_ipython_extension(ipython: Any) -> None:
    """Called by ``%load_ext workbench``: adds the magics."""
    _imported("workbench.jupyter").load_ipython_extension(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """Called by ``%unload_ext workbench``."""
    import_module("workbench.jupyter").unload_ipython_extension(ipython)


if not TYPE_CHECKING:  # otherwise a type checker would accept any name

    def __getattr__(name: str) -> Any:
        """An exported name, imported on first access: the module that it comes from, and what that needs."""
        if name == "__all__":
            return _exported()
        if name not in _homes():
            near = get_close_matches(name, _homes(), n=1)
            hint = f": did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
        module, defined = _homes()[name]
        found = vars(_imported(module)).get(defined) or _imported(f"{module}.{defined}")
        return globals().setdefault(name, found)


@cache
def _homes() -> dict[str, tuple[str, str]]:
    """The module of each exported name, and its name there, by ``public/names.py``, which is read and not executed."""
    import ast  # not needed for a command that prints its help

    source = (Path(__file__).parent / "public" / "names.py").read_text(encoding="utf-8")
    imports = [node for node in ast.parse(source).body if isinstance(node, ast.ImportFrom)]
    return {each.asname or each.name: (str(node.module), each.name) for node in imports for each in node.names}


def _imported(module: str) -> Any:
    """A module. The garbage collector pauses: of the objects that an import makes, hardly any is garbage."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return import_module(module)
    finally:
        if collecting:
            gc.enable()


def _exported() -> list[str]:
    return [*sorted(_homes()), *_HOOKS]


admit_front_ends()
