"""Programs in an editor: a strict type checker accepts them, and completion offers what can be written next.

Pyright's engine (Pylance's, too) is asked through basedpyright, whose package brings all that it needs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jedi
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

import workbench as wb
from workbench.runtime.settings.table import OF_RUN, OF_TUNE

ROOT = Path(__file__).parents[2]
SCRIPTS = Path(sys.executable).parent
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
FROM_OTHERS = ("UnknownMemberType", "UnknownVariableType", "UnknownArgumentType", "UnknownParameterType")
AS_IN_CELLS = (
    *(*FROM_OTHERS, "UnknownLambdaType", "MissingParameterType", "MissingTypeStubs", "UnusedExpression"),
    *("MissingTypeArgument", "OptionalOperand", "OperatorIssue"),
)
"""Cells end in expressions and use pandas, which says nothing about types; lessons declare few of their own."""
NOT_TYPED = {"connectors.md", "gallery.md"}
"""Documents whose programs are short, and not typed."""

BEGIN = """import pyarrow as pa
import workbench as wb
from workbench import col
flights = wb.Stream.from_table(pa.table({"origin": ["JFK"], "t": [0]}), event_time="t")
"""
JOB_OF = "job = flights.sink_to(wb.TableSink('flights')).run('flights', parallelism=2)\n"
WRONG_SETTINGS = {
    "job.tune(bufer_timeout='5ms')": 'No parameter named "bufer_timeout"',
    "job.tune(buffer_timeout=5)": '"Literal[5]" cannot be assigned to parameter "buffer_timeout"',
    "job.tune(slots_per_taskmanager=2)": 'No parameter named "slots_per_taskmanager"',
    "job.stepper.fork(2, bufer_size=1)": 'No parameter named "bufer_size"',
    "flights.run('f', checkpoint_mode='exactly')": 'cannot be assigned to parameter "checkpoint_mode"',
    "job.faults.fail(tasks='late[0]')": 'No parameter named "tasks"',
}


def documented() -> dict[str, str]:
    """The programs of the documents, those of one document as one, in which a module is imported once."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    programs = {page.name: "\n".join(BLOCK.findall(page.read_text(encoding="utf-8"))) for page in pages}
    return {name: "\n".join(_imported_once(program.splitlines())) for name, program in programs.items() if program}


def _imported_once(lines: list[str]) -> Iterator[str]:
    known: set[str] = set()
    for line in lines:
        if not line.startswith("import ") or line not in known:
            yield line
        known.add(line)


def lessons() -> dict[str, str]:
    """The notebooks' programs; a magic is no Python, but the cell of ``%%stream`` is."""
    found = {}
    for path in (
        *sorted((ROOT / "notebooks").glob("*.ipynb")),
        *sorted((ROOT / "notebooks/course/solved").glob("*.ipynb")),
    ):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        lines = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        found[path.name] = "\n".join(line for cell in lines for line in cell.splitlines() if not line.startswith("%"))
    return found


def complaints(folder: Path, programs: dict[str, str]) -> dict[str, list[str]]:
    """What pyright says of programs in strict mode: of each by its name. It reads the workbench once for all."""
    modules = {f"program{number}": name for number, name in enumerate(programs)}
    for module, name in modules.items():
        rules = "# pyright: " + ", ".join(f"report{rule}=false" for rule in AS_IN_CELLS)
        first = rules if name.endswith(".ipynb") else "#"
        (folder / f"{module}.py").write_text(f"{first}\n{programs[name]}", encoding="utf-8")
    settings = {"typeCheckingMode": "strict", "include": ["program*.py"], "extraPaths": [str(ROOT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    told = subprocess.run(
        [SCRIPTS / "basedpyright", "--pythonpath", sys.executable, "--outputjson", "--project", folder],
        capture_output=True,
        text=True,
        timeout=480,
        check=False,
    )
    found = json.loads(told.stdout)
    assert found["summary"]["filesAnalyzed"] == len(programs)
    said: dict[str, list[str]] = {name: [] for name in programs}
    for item in found["generalDiagnostics"]:
        name = modules[Path(item["file"]).stem]
        said[name].append(f"{item['range']['start']['line']}: {item['message']}")  # it counts from 0
    return said


@pytest.fixture(scope="module")
def of_documents_and_notebooks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    programs = {name: program for name, program in documented().items() if name not in NOT_TYPED}
    return complaints(tmp_path_factory.mktemp("programs"), {**programs, **lessons()})


@pytest.fixture(scope="module")
def of_mistakes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    right = "job.tune(buffer_timeout='5ms', min_pause=timedelta(seconds=1), speed='max', rate={'t': 'max'})\n"
    begin = "from datetime import timedelta\n" + BEGIN.replace("from workbench import col\n", "")
    programs = {wrong: f"{begin}{JOB_OF}{right}{wrong}\n" for wrong in WRONG_SETTINGS}
    misused = f'{BEGIN}flights.sink_to("delays")\nflights.key_by("origin").windw(wb.tumbling("1h"))\n'
    return complaints(tmp_path_factory.mktemp("mistakes"), {"misused": misused, **programs})


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(documented().keys() - NOT_TYPED))
def test_the_programs_of_the_documents_are_right_in_strict_mode(
    of_documents_and_notebooks: dict[str, list[str]], name: str
) -> None:
    assert of_documents_and_notebooks[name] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", lessons())
def test_the_programs_of_the_notebooks_are_right(of_documents_and_notebooks: dict[str, list[str]], name: str) -> None:
    assert of_documents_and_notebooks[name] == []


def test_mistakes_are_found(of_mistakes: dict[str, list[str]]) -> None:
    found = "\n".join(of_mistakes["misused"])
    assert 'cannot be assigned to parameter "sink" of type "Sink"' in found
    assert 'Cannot access attribute "windw"' in found


@pytest.mark.parametrize("wrong", WRONG_SETTINGS)
def test_wrong_settings_are_found(of_mistakes: dict[str, list[str]], wrong: str) -> None:
    assert len(of_mistakes[wrong]) == 1
    assert WRONG_SETTINGS[wrong] in of_mistakes[wrong][0]


STREAM = {"filter", "with_columns", "key_by", "window", "map", "join", "union", "sink_to", "side_output", "columns"}
KEYED = {"window", "aggregate", "reduce", "process"}
WINDOWED = {"aggregate", "apply"}
PIPELINE = {"run", "explain"}
JOB = {"status", "tune", "pause", "resume", "stop", "wait", "table", "checkpoint", "savepoint", "dashboard", "metrics"}
GROUPS = {name: set(value.__all__) for name in wb.__all__ if isinstance(value := getattr(wb, name), ModuleType)}
PLACES: dict[str, set[str]] = {
    "wb.": {"Stream", "TableSink", "tumbling", "count", "History", "col", "jobs", *GROUPS},
    **{f"wb.{group}.": names for group, names in GROUPS.items()},
    "wb.Stream.": {
        "replay",
        "from_table",
        "from_files",
        "from_generator",
        "from_socket",
        "from_dead_letters",
        "hybrid",
    },
    "flights.": STREAM,
    "wb.Stream.from_files('a.csv').": STREAM,
    "wb.Stream.replay('flights.log', speed='60x').": STREAM,
    "flights.filter('t > 0').": STREAM,
    "flights.filter(col('t') > 0).with_columns(u='t + 1').": STREAM,
    "(flights.filter('t > 0')\n    .": STREAM,
    "(wb.Stream.from_files('a.csv')\n    .filter('t > 0')\n    .with_columns(u='t + 1')\n    .": STREAM,
    "flights.key_by('origin').": KEYED,
    "(flights.filter('t > 0')\n    .key_by('origin')\n    .": KEYED,
    "flights.key_by('origin').window(wb.tumbling('1h')).": WINDOWED,
    "(flights.key_by('origin')\n    .window(wb.tumbling('1h'), allowed_lateness='1h')\n    .": WINDOWED,
    "flights.key_by('origin').window(wb.tumbling('1h')).aggregate(n=wb.count()).": STREAM,
    "flights.join(flights, on='origin', window=wb.tumbling('1h')).": STREAM,
    "flights.connect(flights, on='origin').": {"process", "map"},
    "flights.split({'late': 't > 0'})['late'].": STREAM,
    "flights.sink_to(wb.TableSink('flights')).": PIPELINE,
    "(flights.sink_to(wb.TableSink('a')) + flights.sink_to(wb.TableSink('b'))).": PIPELINE,
    "job = flights.sink_to(wb.TableSink('flights')).run('flights', parallelism=2)\njob.": JOB,
    "wb.job('flights').": JOB,
    "wb.jobs()[0].": JOB,
    "col('t').": {"between", "is_in", "is_null", "cast", "alias", "startswith"},
}


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_jedi_completes(place: str) -> None:
    script = jedi.Script(BEGIN + place, project=jedi.Project(ROOT, sys_path=[str(ROOT), *sys.path]))
    assert {completion.name for completion in script.complete()} >= PLACES[place]


def test_there_are_groups() -> None:
    assert GROUPS.keys() >= {"errors", "restart", "state", "triggers", "windows"}
    assert "early" in GROUPS["triggers"]


@pytest.mark.parametrize("place", [*(f"wb.{group}." for group in GROUPS), *list(PLACES)[::4]])
def test_the_notebook_completes(place: str) -> None:
    """IPython asks jedi with the names that cells have made; nothing of a cell runs for it."""
    names: dict[str, Any] = {}
    exec(BEGIN, names)
    completions = jedi.Interpreter(place, [names]).complete()
    assert {completion.name for completion in completions} >= PLACES[place]


@pytest.fixture(scope="module")
def pyright(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanguageServer]:
    folder = tmp_path_factory.mktemp("editor")
    settings = {"typeCheckingMode": "off", "extraPaths": [str(ROOT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    server = LanguageServer(folder)
    yield server
    server.end()


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_pyright_completes(pyright: LanguageServer, place: str) -> None:
    assert pyright.completions(BEGIN + place) >= PLACES[place]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "settings"),
    [
        (JOB_OF + "job.tune(", set(OF_TUNE)),
        ("flights.run('flights', ", {*OF_RUN, "checkpoint_dir", "resume"}),
        ("flights.sink_to(wb.TableSink('flights')).run(", {*OF_RUN, "checkpoint_dir", "resume"}),
        ("wb.job('flights').stepper.", {"step", "next_record", "until", "back", "fork", "scene"}),
        ("wb.job('flights').faults.", {"fail", "slow_down", "stall"}),
    ],
)
def test_pyright_completes_settings_and_groups(pyright: LanguageServer, place: str, settings: set[str]) -> None:
    assert pyright.completions(BEGIN + place) >= settings


@pytest.mark.parametrize("line", ["pipeline.run('f', ", "job.tune("])
def test_the_notebook_completes_settings(line: str) -> None:
    """IPython adds the arguments of the signature that a function has when it runs."""
    shell = InteractiveShell()
    shell.user_ns.update(pipeline=wb.types.Pipeline(()), job=wb.types.Job.__new__(wb.types.Job))
    with provisionalcompleter():
        found = {completion.text for completion in shell.Completer.completions(f"{line}buffer_", len(line) + 7)}
    assert found == {"buffer_size=", "buffer_timeout="}


class LanguageServer:
    """Pyright's language server, spoken to as an editor does (the Language Server Protocol over standard input)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._process = subprocess.Popen(
            [SCRIPTS / "basedpyright-langserver", "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder
        )
        root = {"uri": folder.as_uri(), "name": folder.name}
        self._ask("initialize", {"processId": None, "rootUri": folder.as_uri(), "workspaceFolders": [root],
                                 "capabilities": {"workspace": {"configuration": True}}})  # fmt: skip
        self._tell("initialized", {})

    def completions(self, program: str) -> set[str]:
        """The names offered at the end of a program."""
        uri = (self._folder / f"program{self._number}.py").as_uri()
        document = {"uri": uri, "languageId": "python", "version": 1, "text": program}
        self._tell("textDocument/didOpen", {"textDocument": document})
        lines = program.split("\n")
        position = {"line": len(lines) - 1, "character": len(lines[-1])}
        answer = self._ask("textDocument/completion", {"textDocument": {"uri": uri}, "position": position})
        self._tell("textDocument/didClose", {"textDocument": {"uri": uri}})
        return {item["label"].removesuffix("=") for item in answer["items"]}

    def end(self) -> None:
        self._ask("shutdown", None)
        self._tell("exit", None)
        self._process.wait(60)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _ask(self, method: str, params: object) -> Any:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            message = self._received()
            if message.get("id") == self._number and "method" not in message:
                return message["result"]
            if message.get("method") == "workspace/configuration":
                settings = {"pythonPath": sys.executable}
                self._send({"id": message["id"], "result": [settings for _ in message["params"]["items"]]})
            elif "id" in message:
                self._send({"id": message["id"], "result": None})

    def _tell(self, method: str, params: object) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def _received(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        assert length, "the language server has ended"
        message: dict[str, Any] = json.loads(self._process.stdout.read(length))
        return message
