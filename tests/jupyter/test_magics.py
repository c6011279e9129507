"""The `%stream` and `%%stream` magics in a real IPython shell, with jobs that record their calls."""

from __future__ import annotations

import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from shell_cells import failure, run

import workbench
from workbench.api.kept.job_record import this_cell
from workbench.dashboard.contract.view_table import VIEWS
from workbench.errors import JobError, WorkbenchError, unknown
from workbench.jupyter import load_ipython_extension, magics, unload_ipython_extension
from workbench.jupyter.extension import SWITCH_INTERVAL_S
from workbench.jupyter.interrupts import interrupts_held
from workbench.jupyter.showing.job_list import JobList
from workbench.jupyter.shutdown import Caretaker
from workbench.jupyter.verbs.table import VERBS
from workbench.plan.logical import LogicalGraph
from workbench.telemetry.frames import EdgeFrame, Frame, TaskFrame, VertexFrame
from workbench.telemetry.whole_file import replaced

STATUS = {"buffer_timeout": "50ms"}


class RecordingJob:
    """Has a job's verbs and remembers every call."""

    def __init__(self, name: str, state: str = "RUNNING") -> None:
        self.name = name
        self.state = state
        self.calls: list[tuple[Any, ...]] = []
        self.recorder = SimpleNamespace(latest=lambda: frame(name))
        self._run = SimpleNamespace(cell=this_cell())

    @property
    def over(self) -> bool:
        return self.state in ("FINISHED", "FAILED", "CANCELED")

    @property
    def faults(self) -> Part:
        return Part(self, "faults")

    @property
    def stepper(self) -> Part:
        return Part(self, "stepper")

    def __getattr__(self, verb: str) -> Callable[..., str]:
        if verb.startswith("_"):
            raise AttributeError(verb)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append((verb, *args, *([kwargs] if kwargs else [])))
            if verb == "stop":
                self.state = "FINISHED"
            if verb == "restore":
                raise JobError(f"there is no savepoint {args[0]!r}")
            if verb in ("status", "tune"):
                return kwargs or STATUS
            return ["monday", "tuesday"] if verb == "savepoints" else f"{verb} done"

        return call

    def __repr__(self) -> str:
        return f"<job {self.name}>"


class Part:
    """A part of a recording job: its verbs are the job's, under its name."""

    def __init__(self, job: RecordingJob, name: str) -> None:
        self._job = job
        self._name = name

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._job, f"{self._name}.{verb}")


class RecordingPipeline:
    """Has a pipeline's `run` and remembers with what it was called."""

    def __init__(self, sink: object = None) -> None:
        self.sink = sink
        self.runs: list[tuple[str, dict[str, Any]]] = []

    def logical_graph(self) -> LogicalGraph:
        return one.logical_graph()

    def run(self, name: str, **settings: Any) -> RecordingJob:
        self.runs.append((name, settings))
        workbench.jobs()[name] = job = RecordingJob(name)
        return job


class RecordingStream:
    """Has a stream's `sink_to`."""

    def sink_to(self, sink: object) -> RecordingPipeline:
        pipelines.append(RecordingPipeline(sink))
        return pipelines[-1]


pipelines: list[RecordingPipeline] = []
one = workbench.Stream.from_table(pa.table({"n": [1]})).sink_to(workbench.DiscardSink())


def frame(job: str) -> Frame:
    tasks = (
        TaskFrame("source[0]", "v0", 0, "tm-0/slot-0", "RUNNING", {"currentInputWatermark": None}),
        TaskFrame("sink[0]", "v1", 0, "tm-0/slot-0", "RUNNING", {"currentInputWatermark": 1_372_658_400_000_000}),
        TaskFrame("sink[1]", "v1", 1, "tm-0/slot-1", "RUNNING", {"currentInputWatermark": 1_372_662_000_000_000}),
    )
    return Frame(
        job=job,
        state="RUNNING",
        sequence=0,
        time_us=0,
        started_us=0,
        settings={"buffer_timeout": "50ms", "speed": None},
        metrics={"numRecordsInPerSecond": 12345.6, "numberOfCompletedCheckpoints": 7},
        vertices=(
            VertexFrame("v0", "source", (("source", "source", ""), ("aggregate", "aggregate", "")), 1, {}, 0, 0),
        ),
        edges=(EdgeFrame("v0->v1", "v0", "v1", "hash", 0, 8, 0.0, 0.0),),
        tasks=tasks,
    )


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> dict[str, RecordingJob]:
    """The jobs of the process; a test puts recording ones in."""
    registry: dict[str, RecordingJob] = {}

    def job(name: str) -> RecordingJob:
        if name not in registry:
            raise JobError(unknown("job", name, registry))
        return registry[name]

    public = {
        "jobs": lambda: registry,
        "job": job,
        "SETTINGS": ("buffer_timeout", "buffer_size", "checkpoint_interval", "parallelism", "rate", "speed"),
        "Stream": RecordingStream,
        "TableSink": lambda name: f"table {name}",
    }
    for name, value in public.items():
        monkeypatch.setattr(workbench, name, value, raising=False)
    monkeypatch.setattr(workbench.types, "Pipeline", RecordingPipeline)
    pipelines.clear()
    return registry


@pytest.fixture
def shell(jobs: dict[str, RecordingJob], shell: InteractiveShell) -> InteractiveShell:
    """With a stream and a pipeline in its namespace."""
    shell.user_ns.update(stream=RecordingStream(), pipeline=RecordingPipeline())
    return shell


# --- %stream VERB


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("status", ("status",)),
        ("status delays", ("status",)),
        ("dashboard", ("dashboard",)),
        ("lecture", ("lecture",)),
        ("lecture delays latency", ("lecture", "latency")),
        ("pause", ("pause",)),
        ("pause delays", ("pause",)),
        ("resume", ("resume",)),
        ("seek 2013-07-01", ("seek", "2013-07-01")),
        ("seek delays 2013-07-01", ("seek", "2013-07-01")),
        ("checkpoint", ("checkpoint",)),
        ("savepoint before-fix", ("savepoint", "before-fix")),
        ("savepoint delays before-fix", ("savepoint", "before-fix")),
        ("savepoint delays", ("savepoint", "delays")),
        ("step", ("stepper.step",)),
        ("step 3", ("stepper.step", 3)),
        ("step delays barrier", ("stepper.next_barrier",)),
        ("step window", ("stepper.until_window_fires",)),
        ("step back", ("stepper.back",)),
        ("step back 4", ("stepper.back", 4)),
        ('step until "total > 5" sum', ("stepper.until", "total > 5", "sum")),
        ('step told "is replayed"', ("stepper.until_told", "is replayed")),
        ("fail aggregate[1]", ("fail", {"task": "aggregate[1]"})),
        ("fail delays aggregate[1]", ("fail", {"task": "aggregate[1]"})),
        ("fail tm-1", ("faults.fail", {"taskmanager": "tm-1"})),
        ("plan", ("graph",)),
        ("late", ("late_records",)),
        ("letters", ("dead_letters",)),
        ("late delays aggregate", ("late_records", "aggregate")),
        ("report", ("report", "delays-report.html")),
        ("report out.html", ("report", "out.html")),
        ('report "my run.html"', ("report", "my run.html")),
        ("late 'delays' \"O'Hare\"", ("late_records", "O'Hare")),
        ("late O'Hare", ("late_records", "O'Hare")),
        ("step until total='x' sum", ("stepper.until", "total='x'", "sum")),
        ("stop delays", ("stop",)),
        ("cancel delays", ("cancel",)),
    ],
)
def test_a_verb_calls_its_twin(shell: InteractiveShell, jobs: dict[str, RecordingJob], line: str, call: tuple) -> None:
    jobs["delays"] = RecordingJob("delays")
    assert run(shell, f"%stream {line}") == (STATUS if call == ("status",) else f"{call[0]} done")
    assert jobs["delays"].calls == [call]


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("set buffer_timeout=5ms", {"buffer_timeout": "5ms"}),
        ("set buffer_timeout 5ms", {"buffer_timeout": "5ms"}),
        ("set buffer-timeout=5ms speed=max", {"buffer_timeout": "5ms", "speed": "max"}),
        ("set delays speed 600x checkpoint_interval=1s", {"speed": "600x", "checkpoint_interval": "1s"}),
        ("set buffer_timeout = 5ms", {"buffer_timeout": "5ms"}),
        ("set delays speed =max checkpoint_interval= 1s", {"speed": "max", "checkpoint_interval": "1s"}),
        ("set parallelism 4 rate=clicks:5000", {"parallelism": "4", "rate": "clicks:5000"}),
    ],
)
def test_set_tunes(shell: InteractiveShell, jobs: dict[str, RecordingJob], line: str, changes: dict[str, str]) -> None:
    jobs["delays"] = RecordingJob("delays")
    told = run(shell, f"%stream {line}")
    assert told.splitlines() == [f"delays: {name} {STATUS.get(name)} → {value}" for name, value in changes.items()]
    assert jobs["delays"].calls == [("status",), ("tune", changes)]


def test_set_of_an_architectures_argument_tells_the_architecture(
    shell: InteractiveShell, jobs: dict[str, RecordingJob]
) -> None:
    jobs["delays"] = RecordingJob("delays")
    told = run(shell, "%stream set message_timeout=5s max_spout_pending=3")
    assert told.splitlines() == [f"delays: fault_tolerance {STATUS.get('fault_tolerance')} → None"]
    assert jobs["delays"].calls == [("status",), ("tune", {"message_timeout": "5s", "max_spout_pending": "3"})]


def test_set_without_settings_shows_them(shell: InteractiveShell, jobs: dict[str, RecordingJob]) -> None:
    jobs["delays"] = RecordingJob("delays")
    for line in ("%stream set delays", "%stream set"):
        assert run(shell, line) == STATUS
    assert jobs["delays"].calls == [("status",), ("status",)]


def test_show_gives_the_job(shell: InteractiveShell, jobs: dict[str, RecordingJob]) -> None:
    jobs["delays"] = RecordingJob("delays")
    assert run(shell, "%stream show") is jobs["delays"]


def test_the_newest_running_job_is_meant(shell: InteractiveShell, jobs: dict[str, RecordingJob]) -> None:
    for name, state in [("a", "RUNNING"), ("b", "RUNNING"), ("c", "FINISHED")]:
        jobs[name] = RecordingJob(name, state)
    assert run(shell, "%stream show") is jobs["b"]
    jobs["a"].state = jobs["b"].state = "FAILED"
    assert failure(shell, "%stream show").endswith("no job is running: name one, '%stream show NAME', from a, b, c")


def test_list(shell: InteractiveShell, jobs: dict[str, RecordingJob]) -> None:
    assert repr(run(shell, "%stream list")) == "no jobs"
    jobs["<b>"] = RecordingJob("<b>")
    listed = run(shell, "%stream")
    assert isinstance(listed, JobList)
    assert listed.rows == (("<b>", "RUNNING", "12,346", "2013-07-01 06:00:00", "7", "buffer_timeout=50ms"),)
    assert (
        repr(listed).splitlines()[1] == "<b>  RUNNING  12,346     2013-07-01 06:00:00  7            buffer_timeout=50ms"
    )
    assert "<td>&lt;b&gt;</td>" in listed._repr_html_()


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "lst",
            "unknown verb 'lst': did you mean 'list'? Valid: cancel, checkpoint, compare, dashboard, delete-sav",
        ),
        (
            "set bufer_timeout=5ms",
            "unknown setting 'bufer_timeout': did you mean 'buffer_timeout'? Valid: buffer_size,",
        ),
        ("set delays bufer_timeout=5ms", "unknown setting 'bufer_timeout': did you mean 'buffer_timeout'?"),
        ("set speed=max speed=2x", "speed is both 'max' and '2x': write it once"),
        ("set buffer-timeout=1ms buffer_timeout=2ms", "buffer_timeout is both '1ms' and '2ms': write it once"),
        ("set message_timeout=", "message_timeout has no value: write for example '%stream set message_timeout=VALUE'"),
        ("set speed", "speed has no value: write for example '%stream set speed=VALUE'"),
        ("set speed=", "speed has no value: write for example '%stream set speed=VALUE'"),
        ("set speed = buffer_timeout=5ms", "speed has no value: write for example '%stream set speed=VALUE'"),
        ("help pase", "unknown verb 'pase': did you mean 'pause'? Valid: cancel, checkpoint,"),
        ("help pause resume", "%stream help takes [VERB], not 2 words"),
        ("set delayz speed=max", "unknown job 'delayz': did you mean 'delays'? Valid: delays"),
        ("pause delayz", "unknown job 'delayz': did you mean 'delays'? Valid: delays"),
        ("pause delays now", "%stream pause takes pause [NAME], not 2 words"),
        ("seek", "%stream seek needs TIME: write '%stream seek [NAME] TIME'"),
        (
            "step three",
            "%stream step cannot take 'three': write a number of steps, one of record, buffer, barrier, watermark, "
            "aligned, checkpoint, window, 'back STEPS', 'until \"CONDITION\" OPERATOR', or 'told \"WORDS\"'",
        ),
        ("fail", "%stream fail needs WHAT: write '%stream fail [NAME] WHAT'"),
        ("restore delays before-fix", "there is no savepoint 'before-fix'"),
        ("state aggregate 'New York", 'a quotation mark in "state aggregate \'New York" is not closed: close it'),
        (
            f"status {'x' * 10_000}",
            f"the line {'status ' + 'x' * 53!r}... has 10,007 characters, more than the maximum of 10,000",
        ),
        ("list delays", "%stream list takes no words, not 'delays': '%stream show delays' shows one job"),
    ],
)
def test_a_mistake_gets_one_line(
    shell: InteractiveShell, jobs: dict[str, RecordingJob], line: str, sentence: str
) -> None:
    jobs["delays"] = RecordingJob("delays")
    assert sentence in failure(shell, f"%stream {line}")
    assert jobs["delays"].calls in ([], [("restore", "before-fix")])


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        ("monday", {}),
        ("delays monday", {}),
        ("monday --allow-non-restored-state", {"allow_non_restored_state": True}),
        ("--allow-non-restored-state delays monday", {"allow_non_restored_state": True}),
    ],
)
def test_restore_drops_state_only_on_request(
    shell: InteractiveShell, jobs: dict[str, RecordingJob], words: str, allowed: dict[str, bool]
) -> None:
    jobs["delays"] = RecordingJob("delays")
    failure(shell, f"%stream restore {words}")
    assert jobs["delays"].calls == [("restore", "monday", *([allowed] if allowed else []))]


def test_without_a_job(shell: InteractiveShell) -> None:
    assert "there is no job yet: start one with '%%stream NAME'" in failure(shell, "%stream pause")


# --- %%stream NAME


def test_a_cell_starts_its_stream(shell: InteractiveShell, jobs: dict[str, RecordingJob]) -> None:
    job = run(
        shell,
        "%%stream delays -p 2 --buffer-timeout 50ms --checkpoint-interval 5s --checkpoint-dir D --resume -o handle\n"
        "limit = 15\n"
        "stream\n",
    )
    assert job is jobs["delays"] is shell.user_ns["handle"]
    assert shell.user_ns["limit"] == 15
    [pipeline] = pipelines
    assert pipeline.sink == "table delays"
    settings = {
        "parallelism": 2,
        "buffer_timeout": "50ms",
        "checkpoint_interval": "5s",
        "checkpoint_dir": "D",
        "resume": True,
    }
    assert pipeline.runs == [("delays", settings)]


def test_a_cell_may_end_in_a_pipeline(shell: InteractiveShell) -> None:
    options = "--speed max --slots-per-taskmanager 4 --guarantee exactly-once --no-local-aggregation"
    run(shell, f"%%stream delays {options}\npipeline")
    settings = {"resume": False, "speed": "max", "slots_per_taskmanager": 4, "guarantee": "exactly-once"}
    settings["local_aggregation"] = False
    assert shell.user_ns["pipeline"].runs == [("delays", settings)]
    assert pipelines == []


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("x = 1", "the cell ends without a value, so there is nothing to run"),
        ("print('x', end='', file=__import__('io').StringIO())", "the cell ends without a value"),
        ("42", "the cell ends in a int, but '%%stream delays' runs a stream"),
    ],
)
def test_a_cell_that_is_no_stream(shell: InteractiveShell, body: str, sentence: str) -> None:
    assert sentence in failure(shell, f"%%stream delays\n{body}")
    assert workbench.jobs() == {}


def test_a_running_name_is_refused_or_replaced(shell: InteractiveShell, jobs: dict[str, RecordingJob]) -> None:
    old = jobs["delays"] = RecordingJob("delays")
    assert "job 'delays' is running, and another cell started it: '%stream stop delays' ends it" in failure(
        shell, "%%stream delays\nstream"
    )
    assert old.calls == []
    assert run(shell, "%%stream delays --replace\nstream") is not old
    assert [call[0] for call in old.calls] == ["stop"]
    jobs["delays"].state = "FINISHED"
    run(shell, "%%stream delays\nstream")


@pytest.fixture
def in_cell(shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has what runs next run in the cell of that id, as a notebook says it."""

    def enter(cell: str) -> None:
        monkeypatch.setattr(shell, "parent_header", {"metadata": {"cellId": cell}}, raising=False)

    return enter


def test_a_cell_that_was_changed_replaces_its_own_job(
    shell: InteractiveShell, jobs: dict[str, RecordingJob], in_cell: Callable[[str], None]
) -> None:
    in_cell("a")
    first = run(shell, "%%stream delays\nstream")
    second = run(shell, "%%stream delays -p 2\nstream")
    assert (first.calls[0][0], second is first, jobs["delays"] is second) == ("stop", False, True)
    third = run(shell, "%%stream delays -p 2\n\nx = 1\nstream")
    assert (second.calls[0][0], third.over) == ("stop", False)


def test_a_cell_that_was_not_changed_shows_its_job_and_says_how_to_replace_it(
    shell: InteractiveShell, jobs: dict[str, RecordingJob], in_cell: Callable[[str], None]
) -> None:
    in_cell("a")
    job = run(shell, "%%stream delays --checkpoint-dir D -o handle\nstream")
    del shell.user_ns["handle"]
    with capture_output(display=False) as printed:
        assert run(shell, "%%stream delays --checkpoint-dir D -o handle\nstream") is job is shell.user_ns["handle"]
    assert job.calls == []
    assert "'%%stream delays --replace' starts it from the beginning" in printed.stdout
    assert [len(pipeline.runs) for pipeline in pipelines] == [1, 0]


def test_the_job_of_another_cell_is_protected_though_both_have_the_same_text(
    shell: InteractiveShell, jobs: dict[str, RecordingJob], in_cell: Callable[[str], None]
) -> None:
    in_cell("a")
    job = run(shell, "%%stream delays\nstream")
    in_cell("b")
    assert "another cell started it" in failure(shell, "%%stream delays\nstream")
    assert job.calls == []


def test_a_cell_with_a_mistake_replaces_nothing(shell: InteractiveShell, jobs: dict[str, RecordingJob]) -> None:
    jobs["delays"] = RecordingJob("delays")
    assert "the cell ends in a int" in failure(shell, "%%stream delays --replace\n42")
    assert isinstance(shell.run_cell("%%stream delays --replace\nmisspelt").error_in_exec, NameError)
    assert jobs["delays"].calls == []


def test_a_quoted_value_has_no_quotation_marks(shell: InteractiveShell, jobs: dict[str, RecordingJob]) -> None:
    run(shell, "%%stream 'delays' --checkpoint-dir \"of two words\"\nstream")
    ((name, settings),) = pipelines[-1].runs
    assert (name, settings["checkpoint_dir"]) == ("delays", "of two words")


def test_a_report_that_cannot_be_written_is_one_line(shell: InteractiveShell, jobs: dict[str, RecordingJob]) -> None:
    def report(path: str) -> None:
        with replaced(Path(path)) as draft:
            draft.write_text("")

    jobs["delays"] = RecordingJob("delays")
    jobs["delays"].report = report  # type: ignore[attr-defined]
    assert failure(shell, "%stream report no/such/run.html").endswith(
        "cannot write 'no/such/run.html': No such file or directory; name a file in another folder"
    )


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "delays --bufer-timeout 5ms",
            "unknown option '--bufer-timeout': did you mean '--buffer-timeout'? Valid: --aligned-checkpoint-timeout,",
        ),
        (
            "",
            "the following arguments are required: name; write '%%stream NAME' with options from -p, --parallelism,",
        ),
        ("delays -p two", "argument -p/--parallelism: invalid int value: 'two'"),
        ("delays -p 2 --par 3", "argument -p/--parallelism: it is given twice, as 2 and as 3: write it once"),
        ("delays more", "%%stream takes one name, and 'more' is a second"),
        ("delays -o 1x", "-o 1x is not the name of a variable"),
        ("delays -o class", "-o class is not the name of a variable"),
        ("delays --restore 'before fix", 'a quotation mark in "delays --restore \'before fix" is not closed: close it'),
    ],
)
def test_a_wrong_line_is_refused_before_the_cell_runs(shell: InteractiveShell, line: str, sentence: str) -> None:
    assert sentence in failure(shell, f"%%stream {line}\nran = True\nstream")
    assert "ran" not in shell.user_ns


def test_an_error_in_the_body_names_the_cells_line(shell: InteractiveShell) -> None:
    shell.user_ns["WorkbenchError"] = WorkbenchError
    cell = "%%stream delays\n\nlimit = 15\nraise WorkbenchError('no such column')\nstream"
    assert failure(shell, cell).endswith("no such column (cell, line 4: raise WorkbenchError('no such column'))")


def printed_by(shell: InteractiveShell, cell: str) -> str:
    """What a cell prints, without colours."""
    with capture_output() as printed:
        shell.run_cell(cell)
    return re.sub("\x1b\\[[0-9;]*m", "", printed.stdout)


def test_a_users_own_exception_shows_the_users_lines(shell: InteractiveShell) -> None:
    text = printed_by(shell, "%%stream delays\nlimit = 1\nlimit / 0")
    assert "ZeroDivisionError: division by zero" in text
    assert "----> 3 limit / 0" in text
    assert "workbench" not in text


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("x = 1\nfoo bar", ":3\n    foo bar\n        ^\nSyntaxError: invalid syntax"),
        ("if True:\nx = 1", ":3\n    x = 1\n    ^\nIndentationError: expected an indented block after 'if'"),
        ("return 3", ":2\n    return 3\n    ^\nSyntaxError: 'return' outside function"),
    ],
)
def test_a_mistake_in_the_syntax_shows_the_users_line_alone(shell: InteractiveShell, body: str, shown: str) -> None:
    text = printed_by(shell, f"%%stream delays\n{body}")
    assert re.fullmatch(rf"\s*File <ipython-input-[^>]+>{re.escape(shown)}.*\s*", text)


def test_an_error_in_the_body_names_the_number_of_its_cell(shell: InteractiveShell) -> None:
    with capture_output() as printed:
        shell.run_cell("%%stream delays\n1 / 0", store_history=True)
    numbers = re.findall(r"<ipython-input-(\d+)-", printed.stdout)
    assert len(numbers) == 2
    assert numbers[0] == numbers[1]


def test_an_error_in_any_cell_is_a_sentence(shell: InteractiveShell) -> None:
    shell.user_ns["WorkbenchError"] = WorkbenchError
    assert failure(shell, "raise WorkbenchError('the fact')") == "WorkbenchError: the fact"
    assert failure(shell, "x = 1\n%stream nonsense").endswith("watch (cell, line 2)")
    assert isinstance(sys.last_value, WorkbenchError)


# --- help, completion, loading


def test_help_shows_usage_with_examples(shell: InteractiveShell) -> None:
    verb_help = shell.find_line_magic("stream").__doc__
    assert "%stream seek [NAME] TIME" in verb_help
    assert "%stream set buffer_timeout=5ms" in verb_help
    assert "%stream restore [NAME] SAVEPOINT [--allow-non-restored-state]" in verb_help
    for name, verb in VERBS.items():
        assert re.search(rf"%stream {re.escape(verb.usage(name))}\s+{re.escape(verb.about)}\n", verb_help)
    cell_help = shell.find_cell_magic("stream").__doc__
    assert "--buffer-timeout" in cell_help
    assert ".key_by" in cell_help


def test_the_help_verb_shows_all_verbs_or_one(shell: InteractiveShell) -> None:
    assert str(run(shell, "%stream help")) == shell.find_line_magic("stream").__doc__
    assert str(run(shell, "%stream help seek")) == (
        "%stream seek [NAME] TIME\n  go to a time of the history\n  %stream seek 2013-07-01T06:00"
    )
    assert str(run(shell, "%stream help help")) == "%stream help [VERB]\n  all verbs, or the usage of one"


def test_a_savepoint_in_memory_says_so(
    shell: InteractiveShell, jobs: dict[str, RecordingJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs["delays"] = job = RecordingJob("delays")
    monkeypatch.setattr(job, "savepoint", lambda name: "", raising=False)
    assert str(run(shell, "%stream savepoint monday")).startswith("the savepoint 'monday' is in memory and is lost")


def completions(shell: InteractiveShell, line: str) -> set[str]:
    with provisionalcompleter():
        return {completion.text for completion in shell.Completer.completions(line, len(line))}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%stream sa", {"savepoint", "savepoints"}),
        ("%stream st", {"stall", "state", "status", "step", "stop"}),
        ("%stream pause ", {"delays"}),
        ("%stream he", {"help"}),
        ("%stream display ", {"cell", "dock"}),
        ("%stream help savep", {"savepoint", "savepoints"}),
        ("%stream set speed = m", {"max"}),
        ("%stream set buf", {"buffer_timeout=", "buffer_size="}),
        ("%stream set batch", {"batch_interval=", "batch_size="}),
        ("%stream set delays sp", {"speed="}),
        ("%stream set de", {"delays"}),
        ("%stream show delays s", {"sink", "sources", "state", "stepper", "subtasks"}),
        ("%stream lecture delays s", {"state", "stepper"}),
        ("%stream fail delays s", {"source[0]", "sink[0]", "sink[1]"}),
        ("%stream restore delays monday --", {"--allow-non-restored-state"}),
        ("%%stream delays --buffer", {"--buffer-timeout", "--buffer-size"}),
        ("%%stream del", {"delays"}),
        ("%%stream delays --driver ", {"live", "stepping"}),
        ("%%stream delays --driver=s", {"stepping"}),
        ("%%stream delays --checkpoint-mode un", {"unaligned"}),
        ("%%stream delays --restart fix", {"fixed-delay"}),
        ("%stream set speed=", {"max"}),
        ("%stream set delays speed m", {"max"}),
        ("%stream set checkpoint-i", {"checkpoint_interval="}),
        ("%stream set speed=max bu", {"buffer_timeout=", "buffer_size="}),
        ("%stream fork delays 12 sp", {"speed="}),
        ("%stream restore delays m", {"monday"}),
        ("%stream delete-savepoint ", {"delays", "monday", "tuesday"}),
        ("%stream state delays a", {"aggregate"}),
        ("%stream stall aggregate o", {"on", "off"}),
        ("%stream compare delays ot", {"other"}),
        ("%stream compare delays acks snap", {"snapshots"}),
        ("%stream compare delays acks tas", {"task-dies"}),
        ("%stream compare delays acks checkpoint_mode=un", {"unaligned"}),
        ("%stream step delays b", {"barrier", "back", "buffer"}),
        ("status = %stream stat", {"state", "status"}),
        ("  %stream pa", {"pause"}),
    ],
)
def test_completion(shell: InteractiveShell, jobs: dict[str, RecordingJob], line: str, expected: set[str]) -> None:
    jobs["delays"] = RecordingJob("delays")
    if "compare" in line:
        jobs["other"] = RecordingJob("other")
    assert completions(shell, line) == expected


@pytest.mark.parametrize("line", ["show delays graph ", "slow-down delays aggregate ", "fail delays sink[0] ", "list "])
def test_no_word_is_offered_behind_the_last_one(
    shell: InteractiveShell, jobs: dict[str, RecordingJob], line: str
) -> None:
    jobs["delays"] = RecordingJob("delays")
    assert completions(shell, f"%stream {line}").isdisjoint(["delays", *VIEWS, "aggregate", "sink[0]"])


def test_savepoints_are_offered_from_the_folder_that_is_named(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {"runs": [SimpleNamespace(name="monday")]}
    monkeypatch.setattr(workbench, "savepoints", lambda folder: kept[folder], raising=False)
    assert completions(shell, "%%stream delays --checkpoint-dir runs --restore ") == {"monday"}


@pytest.mark.parametrize("words", ["restore delays monday --allow-non-restored-state", "savepoint delays"])
def test_a_flag_is_offered_once_and_to_its_verb(
    shell: InteractiveShell, jobs: dict[str, RecordingJob], words: str
) -> None:
    jobs["delays"] = RecordingJob("delays")
    assert "--allow-non-restored-state" not in completions(shell, f"%stream {words} --allow")


def test_the_documentation_lists_the_views() -> None:
    page = (Path(__file__).parents[2] / "docs/dashboard.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", page.partition("## Views")[2].partition("\n#")[0], re.MULTILINE)
    assert sorted(listed) == sorted(VIEWS)


def test_completion_leaves_other_lines_alone(shell: InteractiveShell) -> None:
    assert "savepoint" not in completions(shell, "savep")


def test_unloading_takes_everything_back(bare_shell: InteractiveShell, jobs: dict[str, RecordingJob]) -> None:
    shell = bare_shell
    before = (
        sys.getswitchinterval(),
        shell.custom_exceptions,
        list(shell.Completer.custom_matchers),
        threading.active_count(),
    )
    load_ipython_extension(shell)
    load_ipython_extension(shell)
    assert sys.getswitchinterval() == pytest.approx(min(SWITCH_INTERVAL_S, before[0]))
    assert shell.find_cell_magic("stream") is not None
    unload_ipython_extension(shell)
    unload_ipython_extension(shell)
    after = (
        sys.getswitchinterval(),
        shell.custom_exceptions,
        list(shell.Completer.custom_matchers),
        threading.active_count(),
    )
    assert after == before
    assert shell.find_line_magic("stream") is None
    assert shell.find_cell_magic("stream") is None


# --- interrupts and shutdown


def interrupted(times: int) -> list[str]:
    """What a block has done that was interrupted so many times; the interrupt must come out of it."""
    reached: list[str] = []
    try:
        with interrupts_held():
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
            reached.append("the block ends")
    except KeyboardInterrupt:
        return reached
    raise AssertionError("the interrupt was lost")


def test_an_interrupt_waits_for_the_end_of_the_block() -> None:
    before = signal.getsignal(signal.SIGINT)  # Spark, once started in this process, puts its own there
    assert interrupted(1) == ["the block ends"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_breaks_a_block_that_hangs() -> None:
    assert interrupted(2) == []


def test_whoever_waits_for_the_compiler_can_interrupt_it(
    shell: InteractiveShell, jobs: dict[str, RecordingJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiles(graph: object) -> None:
        signal.raise_signal(signal.SIGINT)  # in this thread: the system may give a process's to any of them, and later
        raise AssertionError("the interrupt is held back until everything is compiled")

    monkeypatch.setattr(magics, "prepare_kernels", compiles)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may ignore it
    try:
        with capture_output():
            result = shell.run_cell("%%stream delays\nstream")
    finally:
        signal.signal(signal.SIGINT, before)
    assert isinstance(result.error_in_exec, KeyboardInterrupt)
    assert jobs == {}


def test_the_caretaker_stops_what_runs() -> None:
    jobs = {"a": RecordingJob("a"), "b": RecordingJob("b", "FINISHED")}
    caretaker = Caretaker(lambda: jobs)
    assert caretaker.stop_all()
    assert [call[0] for call in jobs["a"].calls] == ["stop", "wait"]
    assert jobs["b"].calls == []
    caretaker.dismiss()


def test_the_caretaker_does_not_wait_for_ever() -> None:
    release = threading.Event()
    stuck = SimpleNamespace(over=False, stop=lambda wait: release.wait(10), wait=lambda timeout: None)
    caretaker = Caretaker(lambda: {"stuck": stuck}, patience_s=0.05)
    assert not caretaker.stop_all()
    release.set()
    caretaker.dismiss()


def test_compare_takes_another_job_or_architectures_with_faults_and_settings(
    shell: InteractiveShell, jobs: dict[str, RecordingJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs["delays"], jobs["other"] = RecordingJob("delays"), RecordingJob("other")
    calls: list[Any] = []
    monkeypatch.setattr(workbench, "compare", lambda *what, **more: calls.append((*what, more)), raising=False)
    run(shell, "%stream compare delays other")
    run(
        shell,
        "%stream compare delays snapshots changelog:offset_interval=2s task-dies:at=20 checkpoint-interval=1s",
    )
    run(shell, "%stream compare delays acks")
    assert calls == [
        (jobs["delays"], jobs["other"], {}),
        (
            jobs["delays"],
            ["snapshots", "changelog:offset_interval=2s"],
            {"faults": ["task-dies:at=20"], "replace": True, "checkpoint_interval": "1s"},
        ),
        (jobs["delays"], ["acks"], {"faults": None, "replace": True}),
    ]
    assert "unknown job, architecture or fault 'aks': did you mean 'acks'?" in failure(
        shell, "%stream compare delays aks"
    )
    assert "unknown setting 'fault_tolerance'" in failure(shell, "%stream compare delays acks fault_tolerance=acks")
