"""What a type checker and tab completion see: the package is typed, and completion finds methods and signatures."""

from __future__ import annotations

import inspect
import subprocess
import sys
import zipfile
from pathlib import Path

import jedi
import pyarrow as pa
import pytest
from docstring_rules import members

import workbench as wb
from workbench.compiled import READY
from workbench.lessons.course import SOURCES

ROOT = Path(__file__).parents[2]
TABLE = pa.table({"origin": ["JFK"], "delay": [20]})


def completions(code: str) -> set[str]:
    """What IPython offers behind `code`; it asks jedi with the live names."""
    names = {"wb": wb, "stream": wb.Stream.from_table(TABLE)}
    return {item.name for item in jedi.Interpreter(code, [names]).complete()}


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(wb.__file__).parent / "py.typed").is_file()


def test_the_marker_and_all_notebooks_are_in_the_wheel(tmp_path: Path) -> None:
    build = "import sys; from hatchling.builders.wheel import WheelBuilder; "
    build += "print(next(WheelBuilder(sys.argv[1]).build(directory=sys.argv[2], versions=['standard'])))"
    ran = subprocess.run([sys.executable, "-c", build, ROOT, tmp_path], capture_output=True, text=True, check=True)
    with zipfile.ZipFile(ran.stdout.strip().splitlines()[-1]) as wheel:
        assert {"workbench/py.typed", "workbench/api/streams/stream.py"} <= set(wheel.namelist())
        shared = {name.partition("/share/workbench/")[2] for name in wheel.namelist()} - {""}
        assert shared == {f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")}
        lessons = {Path(name).name for name in wheel.namelist() if name.startswith("workbench/lessons/sources/")}
        assert lessons == {path.name for path in SOURCES.glob("*.md")}
        if READY is not None:
            assert "workbench/compiled/native/ready.abi3.so" in wheel.namelist()
            assert "-cp311-abi3-" in str(wheel.filename)


def test_streams_complete_through_a_chain_of_calls() -> None:
    assert {"filter", "map", "key_by", "with_columns", "window", "union", "sink_to"} <= completions("stream.")
    assert {"window", "aggregate", "process", "reduce"} <= completions("stream.filter('delay > 1').key_by('origin').")
    assert "aggregate" in completions("stream.key_by('origin').window(wb.tumbling('1h')).")
    assert "run" in completions("stream.sink_to(wb.TableSink('out')).")
    assert {"tune", "checkpoint", "savepoint", "table", "dashboard"} <= completions(
        "stream.sink_to(wb.TableSink('out')).run('x')."
    )


def test_the_package_offers_what_it_exports_and_not_what_is_behind_it() -> None:
    offered = {name for name in completions("wb.") if not name.startswith("_")}
    assert offered == {name for name in wb.__all__ if not name.startswith("_")}


def test_a_group_offers_what_is_in_it() -> None:
    for name in ("errors", "state", "windows"):
        group = getattr(wb, name)
        assert dir(group) == sorted(group.__all__)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("stream.", wb.Stream),
        ("stream.key_by('origin').", wb.types.KeyedStream),
        ("stream.key_by('origin').window(wb.tumbling('1h')).", wb.types.WindowedStream),
        ("stream.connect(stream).", wb.types.ConnectedStreams),
        ("stream.sink_to(wb.TableSink('out')).", wb.types.Pipeline),
        ("stream.sink_to(wb.TableSink('out')).run('x').", wb.types.Job),
    ],
)
def test_nothing_is_offered_that_is_not_documented(code: str, kind: type) -> None:
    offered = {name for name in completions(code) if not name.startswith("_")}
    documented = {name for name, value in members(kind) if inspect.getdoc(value)}
    assert offered == documented


def test_a_running_job_completes() -> None:
    job = wb.Stream.from_table(TABLE).sink_to(wb.TableSink("out")).run("completed")
    job.wait("120s")
    assert {"tune", "checkpoint", "savepoint", "pause", "resume", "stop", "wait", "status", "table"} <= set(dir(job))
    assert {item.name for item in jedi.Interpreter("job.sta", [{"job": job}]).complete()} >= {"status"}


@pytest.mark.parametrize(
    "kind",
    [
        wb.Stream,
        wb.types.KeyedStream,
        wb.types.WindowedStream,
        wb.types.ConnectedStreams,
        wb.types.Pipeline,
        wb.types.Job,
    ],
)
def test_every_public_method_has_types_and_a_docstring(kind: type) -> None:
    for name, method in inspect.getmembers(kind, callable):
        if name.startswith("_"):
            continue
        assert inspect.getdoc(method), name
        signature = inspect.signature(method)
        assert signature.return_annotation is not signature.empty, name
        untyped = [item.name for item in signature.parameters.values() if item.annotation is item.empty]
        assert [parameter for parameter in untyped if parameter not in ("self", "cls")] == [], name
