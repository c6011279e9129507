"""Sends the plan, with the functions of users, to Spark's Python workers.

It is pickled by value with Spark's own pickler, for the life of this process, into a file that only this user can read,
in a temporary folder: checkpoints never contain it. A worker compares the content with the checksum in the name of the
file, which Spark has sent it, and reads no file that others can write. Sinks run in the driver, so they are left out.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cache
from io import BytesIO, FileIO
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

from workbench.connectors.contract.base import Sink
from workbench.durable.disk import open_private
from workbench.durable.only_mine import check_only_mine
from workbench.errors import CheckpointError, PlanError
from workbench.errors import __file__ as errors_file
from workbench.spark.carried.plan import CarriedPlan

_RECEIVED: dict[str, CarriedPlan] = {}


def sent(plan: CarriedPlan) -> bytes:
    """The plan as bytes, without its sinks.

    Raises:
        PlanError: a function of the pipeline refers to a value that cannot be sent; names the variable.
    """
    with _by_value():
        try:
            return _pickled(plan)
        except Exception as error:
            raise _unsendable(plan, error) from error


def _pickled(value: object) -> bytes:
    content = BytesIO()
    _Pickler(content).dump(value)
    return content.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # PySpark is untyped here
    """Replaces each sink by an empty one: it may hold connections, or functions that belong to the driver."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Sink) and not isinstance(obj, SinkInDriver):
            return SinkInDriver, ()
        return super().reducer_override(obj)


class SinkInDriver(Sink):
    """Stands for a sink in the workers."""

    kind = "sink"
    name = "sink"


@contextmanager
def _by_value() -> Iterator[None]:
    """Within the block, functions and classes of the user's own modules are pickled by value, because workers cannot
    import them."""
    installed = tuple(str(Path(place).resolve()) for place in (sys.prefix, sys.base_prefix, Path(errors_file).parent))
    own = [
        module
        for name, module in list(sys.modules.items())
        if name != "__main__"
        and (file := getattr(module, "__file__", None)) is not None
        and file.endswith(".py")
        and not str(Path(file).resolve()).startswith(installed)
        and module.__name__ == name
    ]
    taken = []
    try:
        for module in own:
            cloudpickle.register_pickle_by_value(module)
            taken.append(module)
        yield
    finally:
        for module in taken:
            cloudpickle.unregister_pickle_by_value(module)


def placed(content: bytes) -> Path:
    """A file with the plan for processes on this machine, until this process ends."""
    file = _folder() / f"plan-{_checksum(content)}.bin"
    if not file.exists():
        with FileIO(file, "w", opener=open_private) as written:
            written.write(content)
    return file


def shipped(context: Any, content: bytes) -> str:
    """Make the plan available to executors, including executors that are started later; return the name of its file.

    Spark sends each new executor all files of its context; if one is missing, every task there fails. So the file must
    exist until this process ends, longer than the checkpoint directory of a job may. The plan is not part of the
    processor, because Spark broadcasts objects of more than a megabyte.

    Args:
        context: of Spark.
        content: of the plan.
    """
    file = placed(content)
    context.addFile(str(file))
    return file.name


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="workbench-spark-plans-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def received(file: Path) -> CarriedPlan:
    """Receive the plan in a worker; it is unpickled once in each process.

    Raises:
        CheckpointError: another user could have written the file, or its content is not what was sent.
    """
    if file.name not in _RECEIVED:
        check_only_mine(file)
        content = file.read_bytes()
        if file.name != f"plan-{_checksum(content)}.bin":
            raise CheckpointError(f"{file} is not the plan that was sent to this worker: run the pipeline again")
        plan = cloudpickle.loads(content)
        _RECEIVED.clear()
        _RECEIVED[file.name] = plan
    return _RECEIVED[file.name]


def _unsendable(plan: CarriedPlan, error: Exception) -> PlanError:
    for node in plan.graph.logical.nodes:
        if node.role == "sink":
            continue
        for function in _functions(node.spec):
            for name, value in _variables(function):
                if not _fits(value):
                    return PlanError(
                        f"the function {getattr(function, '__name__', '?')!r} uses the variable {name!r}, a "
                        f"{type(value).__name__}, which cannot be sent to Spark's workers: create it inside the "
                        "function, or pass only the values that the function needs",
                        origin=node.origin,
                    )
        if not _fits(node.spec):
            return PlanError(
                f"the operator {plan.graph.logical.uids[node]!r} cannot be sent to Spark's workers "
                f"({type(error).__name__}: {error}): run this pipeline in the kernel",
                origin=node.origin,
            )
    return PlanError(f"the pipeline cannot be sent to Spark's workers: {type(error).__name__}: {error}")


def _fits(value: object) -> bool:
    try:
        _pickled(value)
    except Exception:  # noqa: BLE001  a user's object may raise anything
        return False
    return True


def _functions(value: Any, depth: int = 0) -> Iterator[Any]:
    """The functions in a spec."""
    if depth > 4:  # specs are shallow
        return
    if hasattr(value, "__code__"):
        yield value
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _functions(getattr(value, field.name, None), depth + 1)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _functions(item, depth + 1)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _functions(item, depth + 1)
    elif not isinstance(value, type) and (own := getattr(value, "__dict__", None)) and depth < 3:
        for item in own.values():
            yield from _functions(item, depth + 1)


def _variables(function: Any) -> Iterator[tuple[str, Any]]:
    """The global and enclosing variables that a function uses, by name."""
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    if function.__module__ == "__main__" or "<locals>" in function.__qualname__:
        for name in code.co_names:
            if name in function.__globals__:
                yield name, function.__globals__[name]
