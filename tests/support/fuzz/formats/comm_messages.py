"""Messages of the front end: acts of the control comm, for a job that runs."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

import workbench as wb
from workbench.errors import JobError
from workbench.jupyter.comm import answer

from ..mutations import values
from ..trial import FOREIGN, Format, Trial

JOB = "fuzzed"
_ACTS: tuple[dict[str, Any], ...] = (
    {"name": "hello"},
    *({"name": name, "job": JOB} for name in ("pause", "resume", "checkpoint", "stop")),
    {"name": "savepoint", "job": JOB, "args": {"name": "before-fix"}},
    {"name": "fail", "job": JOB, "args": {"task": "aggregate[0]"}},
    {"name": "tune", "job": JOB, "args": {"settings": {"buffer_timeout": "5ms", "checkpoint_interval": "1s"}}},
    {"name": "tune", "job": JOB, "args": {"settings": {"speed": "max", "parallelism": 2, "min_pause": "0ms"}}},
    {"name": "tune", "job": JOB, "args": {"settings": {"checkpoint_mode": "unaligned", "restart": "none"}}},
)


def stepping_job() -> wb.types.Job:
    """A job that waits to be stepped; a new one where the last one is over."""
    known = wb.jobs().get(JOB)
    if known is not None and not known.over:
        return known
    table = pa.table({"k": ["a", "b"] * 20, "t": range(0, 40_000_000, 1_000_000)})
    stream = wb.Stream.from_table(table, event_time="t", rate=10.0).with_parallelism(1).key_by("k")
    counts = stream.window(wb.tumbling("10s")).aggregate(n=wb.count())
    job = counts.sink_to(wb.TableSink("counts")).run(JOB, driver="stepping", buffer_size=1, checkpoint_interval="1s")
    job.stepper.step(20)
    return job


class CommMessages(Format):
    """An act is answered, whatever it says."""

    name = "comm"
    share = 12

    def make(self, trial: Trial) -> Any:
        stepping_job()
        message: Any = {"v": 1, "type": "act", "id": "7", **trial.chance.choice(_ACTS)}
        for _ in trial.changes():
            message = trial.changed(values.changed, message, "an act")
        try:
            return json.loads(values.as_text(trial.chance, message))
        except (ValueError, RecursionError):
            return message  # as the kernel would not have passed it on

    def read(self, trial: Trial, made: Any) -> None:
        reply = answer(made, wb.jobs)
        trial.must(isinstance(reply["id"], str) and isinstance(reply["ok"], bool), f"the reply is {reply!r}"[:500])
        json.dumps(reply, allow_nan=False)
        if not reply["ok"]:
            trial.must(FOREIGN.match(reply["text"]) is None, f"the reply to {made!r} is: {reply['text']}"[:500])
            raise JobError(reply["text"])
