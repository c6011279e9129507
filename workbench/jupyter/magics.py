"""The magics: ``%%stream NAME`` runs the stream that a cell ends in, ``%stream VERB`` acts on a running job."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from keyword import iskeyword
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.display import display
from IPython.utils.process import arg_split

import workbench as wb
from workbench.api.beginning.preparing import prepare_kernels
from workbench.api.job.registry import make_room
from workbench.api.kept.job_record import RECORD, Cell, started_from
from workbench.api.launching.refusals import RunRequest, check_beginning, check_directory, planned
from workbench.api.running.found_jobs import FoundJob
from workbench.api.running.pipeline import on_spark
from workbench.arguments import as_flags
from workbench.dashboard.page.carrier import cell_id
from workbench.durations import format_instant
from workbench.errors import JobError, PlanError, SettingError, unknown
from workbench.jupyter.cell import MISSING, run_body
from workbench.jupyter.interrupts import interrupts_held
from workbench.jupyter.queries.cell import run_query, run_views
from workbench.jupyter.showing.advice import Advice
from workbench.jupyter.showing.docked import dock
from workbench.jupyter.verbs.resuming import RUN
from workbench.jupyter.verbs.running import about_verbs, run_verb
from workbench.jupyter.words import words_of
from workbench.once import Once
from workbench.packages import needed
from workbench.printable import printable
from workbench.redaction import HIDDEN, hidden_places
from workbench.runtime.settings.setting import Setting
from workbench.runtime.settings.settings import Settings
from workbench.runtime.settings.table import OF_RUN
from workbench.spark.engine.directory import check_unused
from workbench.spark.jobs.absent import check_settings
from workbench.spark.masters import Master

Option = tuple[tuple[str, ...], dict[str, Any]]
"""The flags of an option, and its arguments for argparse."""


def _option(setting: Setting) -> Option:
    flag = setting.name.replace("_", "-")
    if setting.default is True:
        switched_off = {"dest": setting.name, "action": "store_const", "const": False}
        return (f"--no-{flag}",), {**switched_off, "help": f"do not {setting.help}"}
    number = {"type": int} if isinstance(setting.default, int) else {}
    return (*filter(None, [setting.flag]), f"--{flag}"), {**number, "help": setting.help}


OPTIONS: tuple[Option, ...] = (
    *map(_option, OF_RUN.values()),
    (("--checkpoint-dir",), {"help": "folder of the checkpoints; without it the job does not survive the kernel"}),
    (("--engine",), {"help": "kernel (the default), or spark: on Spark Structured Streaming, with the same results"}),
    (
        ("--master",),
        {"help": "master of Spark, with --engine spark: local[*], local-cluster[2,1,1024], spark://HOST:7077"},
    ),
    (("--driver",), {"help": "live (the default), or stepping: the job advances only with '%%stream step'"}),
    (("--resume",), {"action": "store_true", "help": "continue from the latest checkpoint of --checkpoint-dir"}),
    (("--restore",), {"metavar": "SAVEPOINT", "help": "start from a savepoint: its name, or its folder"}),
    (
        ("--allow-non-restored-state",),
        {"action": "store_true", "help": "drop the savepoint's state that no operator of this cell can restore"},
    ),
    (
        ("--no-incremental",),
        {"dest": "incremental", "action": "store_const", "const": False, "help": "write every checkpoint in full"},
    ),
    (
        ("--standby",),
        {"action": "store_true", "help": "wait while another process runs the job; take over when it dies"},
    ),
    (("--replace",), {"action": "store_true", "help": "stop a running job of this name, and start over"}),
    (("--no-dashboard",), {"action": "store_true", "help": "show the job without its dashboard"}),
    (("-o", "--output"), {"metavar": "VAR", "help": "variable that holds the job"}),
)


def stream_arguments(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the options of ``%%stream`` or ``%%stream_sql``; IPython turns them into the help of ``%%stream?``."""

    def declared(magic: Callable[..., Any]) -> Callable[..., Any]:
        for flags, details in reversed(OPTIONS):
            magic = argument(*flags, **{"action": Once, **details})(magic)
        named: Callable[..., Any] = magic_arguments(name)(argument("name", help="name of the job")(magic))
        return named

    return declared


@magics_class
class StreamMagics(Magics):
    """``%stream``, ``%%stream`` and ``%%stream_sql``."""

    @line_magic("stream")
    def verb(self, line: str) -> Any:
        return run_verb(words_of(line), self._offer, self.shell.user_ns)

    def _offer(self, job: FoundJob, cell: Cell, run: bool) -> Any:
        """Show the cell of a job of an earlier kernel, and put it into the next input, or run it from the job's latest
        checkpoint; if its secrets were not kept, the user must complete it."""
        again = Cell(resuming(cell.line), cell.body, magic=cell.magic)
        text = str(again)
        shown = printable(text)
        if cell.redacted:
            places = printable(", ".join(hidden_places(text)))
            return Advice(f"Secrets are not kept: run this cell with yours in place of {HIDDEN} in {places}\n\n{shown}")
        name, reached, _, directory = job.facts
        started = format_instant(job.record.started_us)
        about = f"This cell started {name!r} on {started}, as {RECORD} in {directory} says; {reached}."
        if run:
            display(Advice(f"{about}\n\n{shown}"))
            return self.shell.run_cell_magic(again.magic, again.line, again.body)
        if shown != text:
            what = f"It has invisible characters, shown escaped here: '%stream resume {name} {RUN}' runs it"
        else:
            self.shell.set_next_input(text)
            what = f"It is the next input: read it, and run it there or with '%stream resume {name} {RUN}'"
        return Advice(f"{about}\n{what}.\n\n{shown}")

    verb.__doc__ = about_verbs()

    @cell_magic("stream")
    @stream_arguments("%stream")
    def start(self, line: str, body: str) -> Any:
        """Run the stream that the cell ends in as a job; the cell returns at once.

        A stream without a sink keeps its rows in the job: read them with job.table(NAME). Lines before the last one
        run as in any cell.

        Running a cell again while its job runs replaces the job if the cell has changed, and otherwise shows the job.
        The job of another cell is replaced only with --replace, which also sets the checkpoints in --checkpoint-dir
        aside and starts over; once a job has read all of its input, running its cell again does so, too.

        Example::

            %%stream delays -p 2 --buffer-timeout 50ms --checkpoint-interval 5s -o job
            (flights
                .key_by("origin")
                .window(wb.tumbling("1h"))
                .aggregate(flights=wb.count(), mean_delay=wb.mean("dep_delay")))
        """
        __tracebackhide__ = True
        return self._start(parsed(self.start, line), line, body, "stream", run_body)

    @line_cell_magic("stream_sql")
    @stream_arguments("%stream_sql")
    def query(self, line: str, body: str | None = None) -> Any:
        """Run a query in SQL as a job; the cell returns at once.

        The tables are the variables that hold streams, or pyarrow tables to join with. The job, its table and the
        options are those of %%stream. CREATE TEMPORARY VIEW makes a variable that holds a stream, and EXPLAIN shows a
        plan; a cell with these alone starts no job and needs no name.

        Example::

            %%stream_sql delays -p 2
            SELECT origin, window_start, COUNT(*) AS flights
            FROM TUMBLE(flights, sched_dep, INTERVAL '1' HOUR)
            GROUP BY origin, window_start, window_end
        """
        __tracebackhide__ = True
        if body is None or "--help" in words_of(line):
            return Advice(str(self.query.__doc__))
        if not line.strip():
            return run_views(self.shell, body)
        return self._start(parsed(self.query, line), line, body, "stream_sql", run_query)

    def _start(self, options: Any, line: str, body: str, magic: str, run_body: Callable[[Any, str], Any]) -> Any:
        """Run a cell as a job: `run_body` returns the value of its body."""
        __tracebackhide__ = True
        cell = Cell(line.strip(), body, id=cell_id(self.shell.user_ns), magic=magic)
        running = None if options.replace else own_job(options.name, cell)
        if running is not None and running._run.cell is not None and cell.reads_as(running._run.cell):
            begin = partial(self._begin, as_pipeline(run_body(self.shell, body), options.name), options, cell)
            if options.output:
                self.shell.user_ns[options.output] = running
            return self._show(running, options, begin)
        with as_flags(f"%%{magic}"):
            refuse_options(options)
        pipeline = as_pipeline(run_body(self.shell, body), options.name)
        docked = not options.no_dashboard and not is_for_spark(options) and dock(options.name)
        return self._show(self._begin(pipeline, options, cell), options, docked=docked)

    def _begin(self, pipeline: wb.types.Pipeline, options: Any, cell: Cell) -> wb.types.Job:
        """Start the job; a running job of the same name is replaced."""
        elsewhere = is_for_spark(options)
        with as_flags(f"%%{cell.magic}"):
            return self._run(pipeline, options, cell, elsewhere)

    def _run(self, pipeline: wb.types.Pipeline, options: Any, cell: Cell, elsewhere: bool) -> wb.types.Job:
        if elsewhere:
            # Slow where none is active, and interruptible.
            needed("workbench.spark.session", "Spark").session(options.master, progress=True)
        else:
            prepare_kernels(pipeline.logical_graph)  # slow on a machine's first run, and interruptible
        running = wb.jobs().get(options.name)
        if not elsewhere and running is not None and not running.over:
            asked = request(options, pipeline)
            check_beginning(asked, running, planned(asked))  # the running job would be lost for nothing
            make_room(running)
        with interrupts_held(), started_from(cell):
            job = run(pipeline, options, replace=elsewhere or options.replace)
            if options.output:
                self.shell.user_ns[options.output] = job
        return job

    def _show(
        self, job: wb.types.Job, options: Any, begin: Callable[[], wb.types.Job] | None = None, docked: bool = False
    ) -> Any:
        """The job, or its dashboard where that can be drawn and is not docked; `begin` starts one in its place, if it
        was running."""
        drawn = not options.no_dashboard and hasattr(self.shell, "kernel")  # a terminal has nothing to draw it on
        if begin is not None and (not drawn or job.engine == "spark"):
            name = job.name
            magic = "stream" if job._run.cell is None else job._run.cell.magic
            what = f"'%%{magic} {name} --replace' starts it from the beginning, '%stream stop {name}' ends it"
            display(Advice(f"This cell started the job {name!r}, which is still running: {what}."))
        if not drawn:
            return job
        if job.engine == "spark":
            return job.dashboard()
        if docked:
            where = f"The dashboard of {job.name!r} is docked next to the notebook"
            return Advice(f"{where}: '%stream dashboard {job.name}' shows it here, '%stream display cell' always does.")
        view = job.dashboard()
        view.begin = begin
        display(view)
        return None


def resuming(line: str) -> str:
    """The line of ``%%stream`` that continues a job started with `line`."""
    words = iter(arg_split(line))
    kept = []
    for word in words:
        if word in ("--resume", "--replace"):
            continue
        if word == "--restore":
            next(words, None)
        elif not word.startswith("--restore="):
            kept.append(word)
    return " ".join([*kept, "--resume"])


def parsed(magic: Any, line: str) -> Any:
    """The options in `line`.

    Raises:
        SettingError: an unknown option or an invalid value.
    """
    known = [flag for flags, _ in OPTIONS for flag in flags]
    try:
        options, rest = magic.parser.parse_known_args(words_of(line))
    except UsageError as error:
        cell = f"%{magic.parser.prog}" if magic.parser.prog.startswith("%") else f"%%{magic.parser.prog}"
        raise SettingError(f"{cell}: {error}; write '{cell} NAME' with options from {', '.join(known)}") from None
    for word in rest:
        if word.startswith("-"):
            raise SettingError(unknown("option", word.partition("=")[0], known))
        raise SettingError(f"%%stream takes one name, and {word!r} is a second: write '%%stream {options.name}'")
    if options.output and (not options.output.isidentifier() or iskeyword(options.output)):
        raise SettingError(f"-o {options.output} is not the name of a variable")
    return options


def own_job(name: str, cell: Cell) -> wb.types.Job | None:
    """The running job of that name if this cell started it; None: no job of that name is running.

    Raises:
        JobError: something else started the running job of that name.
    """
    running = wb.jobs().get(name)
    if running is None or running.over:
        return None
    if running._run.cell is None or not cell.is_the(running._run.cell):
        raise JobError(
            f"job {name!r} is running, and another cell started it: '%stream stop {name}' ends it, or '%%stream {name}"
            " --replace' does both"
        )
    return running


def is_for_spark(options: Any) -> bool:
    """Whether the line asks for Spark.

    Raises:
        SettingError: for an engine or a master that there is not, or a master without Spark.
    """
    wanted = on_spark(options.engine or "kernel")
    if options.master is not None:
        if not wanted:
            raise SettingError("--master needs Spark: add --engine spark, or remove --master")
        Master.of(options.master)
    return wanted


def refuse_options(options: Any) -> None:
    """Reject an invalid line, as far as possible before the cell runs and before a running job is stopped for it.

    Raises:
        SettingError: an invalid value.
        CheckpointError: the job cannot start in the checkpoint directory.
    """
    if is_for_spark(options):
        check_settings(given(options, OF_RUN))
        check_unused(options.checkpoint_dir, options.resume)
        return
    Settings().with_values(given(options, OF_RUN))
    check_directory(request(options), wb.jobs().get(options.name))


def request(options: Any, pipeline: wb.types.Pipeline | None = None) -> RunRequest:
    """The start that the line requests; without a pipeline until the cell has run."""
    return RunRequest(
        pipeline or wb.types.Pipeline(()),
        options.name,
        given(options, OF_RUN),
        options.checkpoint_dir,
        options.resume,
        options.restore,
        options.allow_non_restored_state,
        options.standby,
        driver=options.driver or "live",
        replace=options.replace,
    )


def as_pipeline(value: Any, name: str) -> wb.types.Pipeline:
    """The cell's final value as a pipeline: a stream without a sink gets a TableSink.

    Raises:
        PlanError: it is not a stream; the sentence says what it is.
    """
    if isinstance(value, wb.types.Pipeline):
        return value
    if isinstance(value, wb.Stream):
        return value.sink_to(wb.TableSink(name))
    if value is MISSING or value is None:
        raise PlanError(
            f"the cell ends without a value, so there is nothing to run: end it with the stream for {name!r} on a line"
            " of its own"
        )
    if hasattr(value, "aggregate"):
        raise PlanError(
            f"the cell ends in a {type(value).__name__}, which has no records yet: add a computation, for example "
            ".aggregate(count=wb.count())"
        )
    raise PlanError(
        f"the cell ends in a {type(value).__name__}, but '%%stream {name}' runs a stream: end the cell with one, for"
        " example wb.Stream.replay(history)"
    )


def run(pipeline: wb.types.Pipeline, options: Any, *, replace: bool = False) -> wb.types.Job:
    """Start the pipeline with the options of the line, and the defaults of ``Pipeline.run`` for the rest."""
    beginning = ("checkpoint_dir", "driver", "restore", "incremental", "engine")
    switches = [name for name in ("standby", "allow_non_restored_state") if getattr(options, name)]
    arguments = {**given(options, (*OF_RUN, *beginning)), **dict.fromkeys(switches, True)}
    if replace:
        arguments["replace"] = True
    return pipeline.run(options.name, resume=options.resume, **arguments)


def given(options: Any, names: Iterable[str]) -> dict[str, Any]:
    """The options that the line gives."""
    return {name: value for name in names if (value := getattr(options, name)) is not None}
