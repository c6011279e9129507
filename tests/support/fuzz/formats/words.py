"""What people write in words: durations, speeds, times, settings, and the lines of the magics."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import workbench as wb
from workbench.durations import (
    format_duration,
    format_instant,
    format_speed,
    parse_duration,
    parse_instant,
    parse_speed,
)
from workbench.jupyter.magics import StreamMagics, parsed, refuse_options, resuming
from workbench.jupyter.verbs.running import run_verb
from workbench.jupyter.words import words_of
from workbench.redaction import redacted

from ..mutations import texts, values
from ..trial import Format, Trial
from .comm_messages import JOB, stepping_job

_WORDS = (
    *(
        "5s",
        "50ms",
        "-1s",
        "1e9d",
        "0",
        "max",
        "600x",
        "infx",
        "nan",
        "2013-07-01",
        "T06:00",
        "+25:00",
        "9999-12-31",
        "#",
    ),
    *(
        "--replace",
        "--driver",
        "stepping",
        "-p",
        "2",
        "-o",
        "job",
        "--restore=x",
        "--",
        "=",
        "'",
        '"',
        "\\",
        "--resume",
    ),
    *(
        JOB,
        "aggregate",
        "aggregate[0]",
        "counts",
        "a",
        "state",
        "late",
        "until",
        "n > 1",
        "back",
        "none",
        "fixed-delay:",
    ),
    *("attempts=3", "delay=1s", "exponential-delay", "failure-rate", "parallelism=2", "speed", "sqlite:///a:b@c"),
)
_Reader = tuple[Callable[[str], Any], tuple[str, ...]]


def _again(parse: Callable[[str], Any], form: Callable[[Any], str]) -> Callable[[str], None]:
    """Read a text, and what is written of its value, which must be the same."""

    def read(text: str) -> None:
        value = parse(text)
        again = parse(form(value))
        if again != value:
            raise ValueError(f"{text!r} is {value!r}, and written again {form(value)!r}, which is {again!r}")

    return read


def _magic(line: str) -> None:
    resuming(line) if words_of(line) else None
    options = parsed(StreamMagics.start, line)
    if options.checkpoint_dir is None:
        refuse_options(options)


def _instant(text: str) -> None:
    format_instant(parse_instant(text, "time"))


def _window(text: str) -> None:
    for assigner in (wb.tumbling, wb.session):
        assigner(text)
    wb.sliding(text, text)


_READERS: tuple[_Reader, ...] = (
    (_again(lambda text: parse_duration(text, "timeout"), format_duration), ("50ms", "1.5h", "2 d", "0", "12345678us")),
    (_again(parse_speed, format_speed), ("600x", "max", "1.5", "1e3x")),
    (_instant, ("2013-07-01", "2013-07-01T06:00:00.5+02:00", "20130701T060000Z")),
    (_window, ("1h", "10s", "0.5ms")),
    (_magic, ("delays -p 2 --buffer-timeout 50ms --checkpoint-interval 5s -o job",)),
    (_magic, ('d --speed "600x" --driver=stepping',)),
    (_magic, ("d --restart fixed-delay:attempts=3,delay=1s --retained-checkpoints 2 --restore s --replace",)),
    (lambda line: run_verb(words_of(line)), (
        "list", "status", f"state {JOB} aggregate a", f"step {JOB} 2", "step until 'n > 1' aggregate", "late",
        f"set {JOB} buffer_timeout=5ms min-pause 0ms", "seek 2013-07-01T06:00", "slow-down aggregate 5ms",
        f"fail {JOB} aggregate[0]", "savepoint before-fix", "restore before-fix --allow-non-restored-state", "plan",
        "stall counts on", "fork 3 buffer_timeout=5ms", "pause", "resume", "checkpoint", "delete-savepoint x",
        "savepoints", "step back 2",
    )),
    (redacted, ("postgres://user:pass@host/db?password=x&token=y", "s3://key:secret@bucket/a?x=y (and more)")),
)  # fmt: skip


class Words(Format):
    """A text is read by what reads texts of its kind."""

    name = "words"
    share = 16

    def make(self, trial: Trial) -> Any:
        chance = trial.chance
        reader, samples = chance.choice(_READERS)
        text = chance.choice(samples)
        for _ in trial.changes():
            if chance.random() < 0.15:
                text = chance.choice(values.NAMES)
            else:
                text = texts.changed(chance, text[:100_000], _WORDS)
            trial.story.append(f"the text is {text[:80]!r}")
        with suppress(wb.errors.WorkbenchError):
            stepping_job()
        return reader, text

    def read(self, trial: Trial, made: Any) -> None:
        reader, text = made
        reader(text)
