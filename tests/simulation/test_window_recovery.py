"""Windows of every kind in jobs that crash, stop, and continue with another parallelism: each result once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import workbench as wb

N = 3_500


class EachThird(wb.triggers.Trigger):
    """Fires with each third record, and at the end."""

    def on_record(self, time_us, window, context):
        context.register_event_timer(window.end - 1)
        context.state["seen"] = context.state.get("seen", 0) + 1
        return wb.triggers.Action.FIRE if context.state["seen"] % 3 == 0 else None

    def on_event_time(self, time_us, window, context):
        return wb.triggers.Action.FIRE_AND_PURGE


def spread(key, window, records):
    values = records["v"].to_pylist()
    return {"spread": max(values) - min(values), "first": values[0]}


KINDS = {
    "sliding": lambda s: s.window(wb.sliding("300us", "100us")).aggregate(n=wb.count(), total=wb.sum("v")),
    "cumulative": lambda s: s.window(wb.windows.cumulative("300us", "100us")).aggregate(n=wb.count(), t=wb.sum("v")),
    "median of sliding": lambda s: s.window(wb.sliding("300us", "100us")).aggregate(n=wb.count(), mid=wb.median("v")),
    "session": lambda s: s.window(wb.session("40us")).aggregate(n=wb.count(), total=wb.sum("v")),
    "collected session": lambda s: s.window(wb.session("40us")).aggregate(all=wb.collect_list("v")),
    "count": lambda s: s.window(wb.windows.count_sliding(7, 3)).aggregate(n=wb.count(), total=wb.sum("v")),
    "global": lambda s: s.window(wb.windows.global_window(), trigger=wb.triggers.on_count(50)).aggregate(
        total=wb.sum("v")
    ),
    "trigger": lambda s: s.window(wb.tumbling("200us"), trigger=EachThird()).aggregate(total=wb.sum("v")),
    "evictor": lambda s: s.window(wb.tumbling("200us"), evictor=wb.windows.keep_last(3)).aggregate(total=wb.sum("v")),
    "function": lambda s: s.window(wb.tumbling("200us")).apply(spread, {"spread": pa.int64(), "first": pa.int64()}),
}


def pipeline(kind: str) -> wb.types.Pipeline:
    rng = np.random.default_rng(2)
    times = np.arange(N) + rng.integers(0, 20, N)
    keys = pa.array(rng.integers(0, 40, N)).cast(pa.string())
    table = pa.table({"k": keys, "v": rng.integers(-99, 99, N), "t": pa.array(times, pa.timestamp("us"))})
    stream = wb.Stream.from_table(table, event_time="t", out_of_orderness="20us").with_parallelism(1)
    return KINDS[kind](stream.key_by("k")).sink_to(wb.TableSink("results"))


def results(job: wb.types.Job) -> list[str]:
    return sorted(map(repr, job.table("results").to_pylist()))


@pytest.mark.parametrize("kind", KINDS)
def test_each_result_comes_once_whatever_happens(kind: str, tmp_path: Path) -> None:
    calm = pipeline(kind).run("calm", parallelism=2, driver="stepping", buffer_size=20)
    calm.wait("1h")
    expected = results(calm)
    assert len(expected) > 40
    settings = {"driver": "stepping", "buffer_size": 20, "checkpoint_dir": str(tmp_path), "checkpoint_interval": "1h"}
    job = pipeline(kind).run("rough", parallelism=2, **settings)
    for _ in range(2):
        job.stepper.step(50)
        job.checkpoint()
        job.stepper.driver.next_checkpoint()
        job.stepper.step(20)
        task = next(row["task"] for row in job.metrics() if row["task"].endswith("[1]"))
        job.fail(task=task)
    job.stepper.step(50)
    job.stop()
    job.wait("1h")
    assert job.table("results").num_rows < len(expected)
    last = pipeline(kind).run("rough", parallelism=3, resume=True, **settings)
    last.wait("1h")
    assert results(last) == expected
