"""The magics: ``%%stream NAME`` runs the stream that a cell ends in, ``%stream VERB`` handles a running job."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from keyword import iskeyword
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.display import display
from IPython.utils.process import arg_split

import workbench as wb
from workbench.api.beginning.preparing import prepare_kernels
from workbench.api.job.registry import make_room
from workbench.api.kept.job_record import RECORD, Cell, started_from
from workbench.api.launching.refusals import check_beginning, check_directory, planned, settings_of
from workbench.api.running.found_jobs import FoundJob
from workbench.durations import format_instant
from workbench.errors import JobError, PlanError, SettingError, unknown
from workbench.jupyter.advice import Advice
from workbench.jupyter.cell import MISSING, run_body
from workbench.jupyter.interrupts import interrupts_held
from workbench.jupyter.verbs import RUN, about_verbs, run_verb
from workbench.jupyter.words import words_of
from workbench.once import Once
from workbench.printable import printable
from workbench.redaction import HIDDEN, hidden_places
from workbench.runtime.barriers.aligned import EXACTLY_ONCE
from workbench.runtime.barriers.policies import POLICIES

SETTINGS = (
    *("parallelism", "max_parallelism", "buffer_timeout", "buffer_size", "checkpoint_interval", "speed"),
    *("checkpoint_mode", "aligned_checkpoint_timeout", "checkpoint_timeout", "min_pause"),
    *("max_concurrent_checkpoints", "tolerable_failed_checkpoints", "retained_checkpoints"),
    *("slots_per_taskmanager", "restart", "local_aggregation"),
)
"""Options that are settings of the job."""

OPTIONS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("-p", "--parallelism"), {"type": int, "help": "parallel subtasks of each operator (default 1)"}),
    (
        ("--max-parallelism",),
        {"type": int, "help": "key groups: to how many subtasks the job can be rescaled (default 128, or as restored)"},
    ),
    (
        ("--buffer-timeout",),
        {"help": "how long a record may wait for its buffer to fill, for example 50ms; or disabled"},
    ),
    (("--buffer-size",), {"type": int, "help": "records in a full buffer"}),
    (("--checkpoint-interval",), {"help": "time between checkpoints, for example 5s; or disabled"}),
    (
        ("--checkpoint-mode",),
        {"help": f"{', '.join(POLICIES)} (default {EXACTLY_ONCE.name})"},
    ),
    (("--aligned-checkpoint-timeout",), {"help": "a checkpoint that takes longer goes on unaligned, for example 2s"}),
    (("--checkpoint-timeout",), {"help": "a checkpoint that takes longer is given up (default 10min)"}),
    (("--min-pause",), {"help": "between the end of a checkpoint and the next one, for example 1s"}),
    (("--max-concurrent-checkpoints",), {"type": int, "help": "checkpoints that may be in progress (default 1)"}),
    (("--tolerable-failed-checkpoints",), {"type": int, "help": "that may fail in a row before the job does"}),
    (("--retained-checkpoints",), {"type": int, "help": "complete checkpoints that are kept (default 3)"}),
    (("--checkpoint-dir",), {"help": "folder of the checkpoints; without it the job does not survive the kernel"}),
    (("--speed",), {"help": "replay speed: 600x is ten minutes of history a second, max does not wait"}),
    (("--slots-per-taskmanager",), {"type": int, "help": "slots of a TaskManager, which fail together (default 2)"}),
    (("--guarantee",), {"help": "exactly-once or at-least-once: refuse a pipeline whose ends cannot keep it"}),
    (
        ("--restart",),
        {"help": "after failures: none, fixed-delay:attempts=3,delay=1s, exponential-delay, or failure-rate"},
    ),
    (("--driver",), {"help": "live (the default), or stepping: the job goes on only with '%%stream step'"}),
    (("--resume",), {"action": "store_true", "help": "continue from the latest checkpoint of --checkpoint-dir"}),
    (("--restore",), {"metavar": "SAVEPOINT", "help": "start from a savepoint: its name, or its folder"}),
    (
        ("--allow-non-restored-state",),
        {"action": "store_const", "const": True, "help": "drop what of the savepoint no operator of this cell takes"},
    ),
    (
        ("--no-incremental",),
        {"dest": "incremental", "action": "store_const", "const": False, "help": "write every checkpoint as a whole"},
    ),
    (
        ("--no-local-aggregation",),
        {
            "dest": "local_aggregation",
            "action": "store_const",
            "const": False,
            "help": "every record travels to its window, also where batches could be aggregated first",
        },
    ),
    (
        ("--standby",),
        {"action": "store_true", "help": "wait while another process runs the job; go on when it dies"},
    ),
    (("--replace",), {"action": "store_true", "help": "stop a running job of this name first"}),
    (("--no-dashboard",), {"action": "store_true", "help": "show the job without its dashboard"}),
    (("-o", "--output"), {"metavar": "VAR", "help": "variable that holds the job"}),
)


def stream_arguments(magic: Callable[..., Any]) -> Callable[..., Any]:
    """Declare the options of ``%%stream``; IPython turns them into the help of ``%%stream?``."""
    for flags, details in reversed(OPTIONS):
        magic = argument(*flags, **{"action": Once, **details})(magic)
    named: Callable[..., Any] = magic_arguments("%stream")(argument("name", help="name of the job")(magic))
    return named


@magics_class
class StreamMagics(Magics):
    """``%stream`` and ``%%stream``."""

    @line_magic("stream")
    def verb(self, line: str) -> Any:
        return run_verb(words_of(line), self._offer)

    def _offer(self, job: FoundJob, cell: Cell, run: bool) -> Any:
        """Show the cell of a job of an earlier kernel, and put it into the next input, or run it from the job's latest
        checkpoint; one whose secrets were not kept is for the person to complete."""
        again = Cell(resuming(cell.line), cell.body)
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
            return self.shell.run_cell_magic("stream", again.line, again.body)
        if shown != text:
            what = f"It has characters that are not seen, written out here: '%stream resume {name} {RUN}' runs it"
        else:
            self.shell.set_next_input(text)
            what = f"It is the next input: read it, and run it there or with '%stream resume {name} {RUN}'"
        return Advice(f"{about}\n{what}.\n\n{shown}")

    verb.__doc__ = about_verbs()

    @cell_magic("stream")
    @stream_arguments
    def start(self, line: str, body: str) -> Any:
        """Run the stream that the cell ends in as a job; the cell returns at once.

        A stream without a sink keeps its rows in the job: read them with job.table(NAME). Lines before the last one
        run as in any cell.

        Example::

            %%stream delays -p 2 --buffer-timeout 50ms --checkpoint-interval 5s -o job
            (flights
                .key_by("origin")
                .window(wb.tumbling("1h"))
                .aggregate(flights=wb.count(), mean_delay=wb.mean("dep_delay")))
        """
        __tracebackhide__ = True
        options = parsed(self.start, line)
        if not options.replace:
            refuse_running(options.name)
        refuse_options(options)
        pipeline = as_pipeline(run_body(self.shell, body), options.name)
        prepare_kernels()  # the first time on a machine that takes long, and whoever waits for it may interrupt it
        if options.replace:
            refuse_plan(pipeline, options)
            if options.name in (running := wb.jobs()):
                make_room(running[options.name])
        with interrupts_held(), started_from(Cell(line.strip(), body)):
            job = run(pipeline, options)
            if options.output:
                self.shell.user_ns[options.output] = job
        if not options.no_dashboard and hasattr(self.shell, "kernel"):  # a terminal has nothing to draw it on
            view = job.dashboard()
            if view is not None:
                display(view)
        return job


def resuming(line: str) -> str:
    """The line of ``%%stream`` that continues a job which was started by `line`."""
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
        SettingError: an option that does not exist or has no usable value.
    """
    known = [flag for flags, _ in OPTIONS for flag in flags]
    try:
        options, rest = magic.parser.parse_known_args(words_of(line))
    except UsageError as error:
        raise SettingError(f"%%stream: {error}; write '%%stream NAME' with options out of {', '.join(known)}") from None
    for word in rest:
        if word.startswith("-"):
            raise SettingError(unknown("option", word.partition("=")[0], known))
        raise SettingError(f"%%stream takes one name, and {word!r} is a second: write '%%stream {options.name}'")
    if options.output and (not options.output.isidentifier() or iskeyword(options.output)):
        raise SettingError(f"-o {options.output} is not the name of a variable")
    return options


def refuse_running(name: str) -> None:
    """Refuse a name that a running job has.

    Raises:
        JobError: a job of this name runs.
    """
    running = wb.jobs().get(name)
    if running is not None and not running.over:
        raise JobError(
            f"job {name!r} is running: '%stream stop {name}' ends it, or '%%stream {name} --replace' does both"
        )


def refuse_options(options: Any) -> None:
    """Refuse what the line says, as far as that can be known before the cell runs and a running job is stopped for it.

    Raises:
        SettingError: a value that cannot be.
        CheckpointError: the job cannot begin in the checkpoint directory.
    """
    settings_of(given(options, SETTINGS))
    if options.checkpoint_dir is not None:
        check_directory(
            options.checkpoint_dir,
            wb.jobs().get(options.name),
            resume=options.resume or options.standby,
            restore=options.restore,
        )


def refuse_plan(pipeline: wb.Pipeline, options: Any) -> None:
    """Refuse a pipeline that cannot run as the line says: the job that runs would be lost for nothing.

    Raises:
        WorkbenchError: see `Pipeline.run`.
    """
    beginning = {"resume": options.resume or options.standby, "restore": options.restore}
    plan = planned(
        pipeline,
        options.name,
        given(options, SETTINGS),
        checkpoint_dir=options.checkpoint_dir,
        standby=options.standby,
        guarantee=options.guarantee,
        driver=options.driver or "live",
        **beginning,
    )
    check_beginning(
        options.checkpoint_dir,
        wb.jobs().get(options.name),
        options.name,
        plan,
        allow_non_restored_state=bool(options.allow_non_restored_state),
        **beginning,
    )


def as_pipeline(value: Any, name: str) -> wb.Pipeline:
    """What the cell ended in, as a pipeline: a stream without a sink gets a TableSink.

    Raises:
        PlanError: it is not a stream; the sentence says what it is.
    """
    if isinstance(value, wb.Pipeline):
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
            f"the cell ends in a {type(value).__name__}, which has no records of its own: say what to compute, for"
            " example .aggregate(count=wb.count())"
        )
    raise PlanError(
        f"the cell ends in a {type(value).__name__}, but '%%stream {name}' runs a stream: end the cell with one, for"
        " example wb.Stream.replay(history)"
    )


def run(pipeline: wb.Pipeline, options: Any) -> wb.Job:
    """Start the pipeline with what the line says, and the defaults of ``Pipeline.run`` for the rest."""
    names = (*SETTINGS, "checkpoint_dir", "guarantee", "driver", "restore", "allow_non_restored_state", "incremental")
    arguments = given(options, names)
    if options.standby:
        arguments["standby"] = True
    return pipeline.run(options.name, resume=options.resume, **arguments)


def given(options: Any, names: Iterable[str]) -> dict[str, Any]:
    """Those of the options that the line has."""
    return {name: value for name in names if (value := getattr(options, name)) is not None}
