"""What several test files share: the flights as a replay log (written by Spark once per process), an object store, job
cleaning, an IPython shell, how examples are searched for, where tests write, which files one process takes where
several test, and what the garbage collector looks at."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path, PurePath
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import settings
from pyarrow import fs

import workbench as wb

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

settings.register_profile("workbench", deadline=None)  # how long an example took tells of the machine, not of the code
settings.load_profile("workbench")

ONE_AFTER_THE_OTHER = {
    "browsers": ("test_*_browser.py", "test_bench_dashboard.py", "test_serve.py"),
    "Spark": (
        *("test_*_spark.py", "test_cli.py", "test_datasets.py", "test_examples.py", "test_main_job.py"),
        "test_tutorial.py",
    ),
}
"""Files that one process takes where several test: a page, its server and its kernel keep two cores busy, and each
process starts a Spark of its own and prepares the flights for itself."""

SLOW_FOLDERS = {"browser", "simulation", "spark", "system"}
"""Folders whose tests play a whole system each, so that `make test` leaves them to `make test-all`."""

MARKED_SLOW = ("mark.slow", "mark.spark", "kernel_sources")
"""One of these words stands in a file of another folder that has slow tests. A collection that meets others fails."""

TESTS = Path(__file__).parent

MEMORY = Path("/dev/shm")
"""A disk in memory for the folders of tests: half of the time of the sinks' tests, a disk would sync files."""

MEMORY_LEAST = 2 << 30
"""So many bytes must be free in it: a run of all tests writes a tenth of that."""

BLIND = ("unseen", "headless")
"""Jobs whose telemetry is made to fail."""

SECRET = "s3cr3t-pa55"
"""Of the object store."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Three processes for two cores: nearly half of the time, a test waits, for a server or until something is due."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # pytest-xdist reads it
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + (cores + 1) // 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each process whole files, so that what a file sets up is set up once.

    What takes longest comes first, so that all processes end at about the same time: what one process takes alone, then
    files that play a whole system, whose few tests take long, then those with most tests.
    """
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = super()._split_scope(nodeid)
            names = (name for name, files in ONE_AFTER_THE_OTHER.items() if any(map(PurePath(path).match, files)))
            return next(names, path)

        def _assign_work_unit(self, node: Any) -> None:
            self.workqueue.move_to_end(max(self.workqueue, key=self._weight), last=False)
            super()._assign_work_unit(node)

        def _weight(self, scope: str) -> tuple[bool, bool, int]:
            is_alone, plays = scope in ONE_AFTER_THE_OTHER, PurePath(scope).parent.name in SLOW_FOLDERS
            return is_alone, plays, len(self.workqueue[scope])

    return ByFile(config, log)


@pytest.fixture(autouse=True, scope="module")
def _what_is_imported_is_set_apart() -> None:
    """All tests' modules are most of what a search for garbage goes through, for half a second, and they stay anyway.

    It looks as if done once, but a search for bugs by simulation puts all back when it ends.
    """
    if not gc.get_freeze_count():
        _set_apart()


def _set_apart() -> None:
    """Let no search for garbage look at what there is now."""
    gc.collect()  # so that no garbage is set apart
    gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whoever wants no slow tests need not import them, nor the other files who wants only them, unless they are
    named."""
    if any(collection_path.name in PurePath(arg.partition("::")[0]).parts for arg in config.args):
        return None
    return True if _is_left_out(collection_path, config.option.markexpr) else None


def _is_left_out(path: Path, wanted: str) -> bool:
    """Whether a folder, or a file, has no test of those that are wanted."""
    if wanted == "not slow":
        return path.name in SLOW_FOLDERS
    return wanted == "slow" and path.match("test_*.py") and not _may_be_slow(path)


def _may_be_slow(path: Path) -> bool:
    if path.parent.name in SLOW_FOLDERS:
        return True
    text = path.read_text(encoding="utf-8")
    return any(word in text for word in MARKED_SLOW)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Where several processes test, import all tests first, each process in an order of its own: pytest compiles those
    that no process has imported before, for nine seconds, and each process finds what others have compiled."""
    config = session.config
    own = getattr(config, "workerinput", None)
    if own is None or [Path(arg).resolve() for arg in config.args] != [TESTS]:
        return
    rooms = [room for room in sorted(TESTS.iterdir()) if not _is_left_out(room, config.option.markexpr)]
    files = [path for room in rooms for path in sorted(room.glob("test_*.py"))]
    files = [path for path in files if not _is_left_out(path, config.option.markexpr)]
    Random(own["workerid"]).shuffle(files)
    for path in files:
        if str(path.parent) not in sys.path:
            sys.path.insert(0, str(path.parent))
        with suppress(Exception, pytest.skip.Exception):  # pytest imports it again, and says what is wrong
            import_module(path.stem)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name in SLOW_FOLDERS or item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.slow)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    if unseen := [str(path) for path in slow if not _may_be_slow(path)]:
        raise pytest.UsageError(f"{unseen} would not be searched for slow tests: see MARKED_SLOW in {__file__}")


def pytest_collection_finish() -> None:
    if "bokeh.core" in sys.modules:  # by the tests of dashboards
        from bokeh_defaults import remember

        remember()


def pytest_configure() -> None:
    """Put the tests' folders into memory, and let them be interrupted."""
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_LEAST:
        os.environ.setdefault("TMPDIR", str(MEMORY))
        tempfile.tempdir = None  # it may have been looked up
    # A shell's process in the background ignores interrupts, and so would all that it starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure() -> None:
    gc.unfreeze()  # the interpreter takes apart at its end only what it looks at


@pytest.fixture(scope="session")
def flights_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The replay log of all flights, prepared by the Spark job that users run."""
    from workbench.datasets import flights_history
    from workbench.spark.session import session

    session()  # one that stays, for other tests of this process
    path = tmp_path_factory.mktemp("flights") / "flights.log"
    flights_history(path, channels=2)
    return path


@pytest.fixture(scope="session")
def delays_oracle(flights_log: Path) -> pa.Table:
    """What the main job must give, by DuckDB over the files of the log."""
    return duckdb.sql(
        f"""
        SELECT origin, date_trunc('hour', departed) AS window_start, count(*) AS flights,
               avg(dep_delay) AS mean_delay, max(dep_delay) AS worst
        FROM read_parquet('{flights_log}/**/*.parquet') WHERE dep_delay IS NOT NULL
        GROUP BY ALL ORDER BY ALL
        """
    ).to_arrow_table()


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """An S3 server on this machine."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    _, port = server.get_host_and_port()
    yield f"127.0.0.1:{port}"
    server.stop()


@pytest.fixture
def bucket(endpoint: str, request: pytest.FixtureRequest) -> str:
    """A URI of a folder in an empty bucket, with the secret in it that opens it."""
    name = f"b{abs(hash(request.node.nodeid)) % 10**9}"
    system = fs.S3FileSystem(
        access_key="key", secret_key=SECRET, endpoint_override=endpoint, scheme="http", region="us-east-1",
        allow_bucket_creation=True, allow_bucket_deletion=True,
    )  # fmt: skip
    system.create_dir(name)
    return (
        f"s3://key:{SECRET}@{name}/jobs/c?endpoint_override={endpoint.replace(':', '%3A')}&scheme=http&region=us-east-1"
    )


@pytest.fixture(autouse=True)
def _no_job_outlives_its_test() -> Iterator[None]:
    """Nor does a job end without being seen: what fails while it samples stops its telemetry, not the job."""
    before = set(map(id, wb.jobs().values()))
    yield
    for job in wb.jobs().values():
        if not job.over:
            job.cancel()
            job.wait("20s")
    made = [job for job in wb.jobs().values() if id(job) not in before and job.name not in BLIND]
    blind = [job.name for job in made if getattr(getattr(job._run, "driver", None), "_unseen", False)]
    assert not blind, f"telemetry stopped: see the events of {blind}"


@pytest.fixture(scope="module")
def bare_shell() -> Iterator[InteractiveShell]:
    """One IPython shell for the tests of a file, as a process has one; it keeps no history file."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    with pytest.MonkeyPatch.context() as after:
        after.setitem(sys.modules, "__main__", sys.modules["__main__"])  # the shell puts a module of its own there
        bare = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
        _set_apart()  # a shell that is reset searches for garbage, before each test
        yield bare


@pytest.fixture
def shell(bare_shell: InteractiveShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """The shell with the extension loaded and nothing in its namespace, in a folder of the test's own."""
    from workbench.jupyter import load_ipython_extension, unload_ipython_extension

    monkeypatch.chdir(tmp_path)
    bare_shell.reset(new_session=False)
    load_ipython_extension(bare_shell)
    yield bare_shell
    unload_ipython_extension(bare_shell)
