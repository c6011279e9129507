"""Frames of channels: what has not changed is the same frame, and what has is told at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench.elements import EndOfStream, Watermark, WatermarkStatus
from workbench.runtime.exchange.channel import Channel
from workbench.telemetry.channels import ChannelSampler


def test_only_channels_that_changed_get_another_frame() -> None:
    table = pa.table({"k": np.arange(40) % 8, "t": np.arange(40).astype("datetime64[us]")})
    counted = wb.Stream.from_table(table, event_time="t").key_by("k").aggregate(n=wb.count())
    job = counted.sink_to(wb.TableSink("counts")).run("still", driver="stepping", parallelism=3)
    execution = job.stepper.driver.execution
    assert execution is not None
    sampler = ChannelSampler()
    first = sampler.sample(execution, 1_000_000)
    assert [(one.edge, one.source, one.target) for one in first] == [
        (channel.edge, channel.source, channel.target) for channel in execution.channels
    ]
    assert all(a is b for a, b in zip(first, sampler.sample(execution, 1_100_000), strict=True))

    def after(now_us: int, at: int, *elements: object) -> tuple[object, ...]:
        channel: Channel = execution.channels[at]
        for element in elements:
            channel.push(element)  # type: ignore[arg-type]
        task = next(task for task in execution.tasks if task.name == channel.target)
        while channel.elements:
            task.step()
        return sampler.sample(execution, now_us)

    told = after(1_200_000, 0, Watermark(7))
    assert told[0].currentChannelWatermark == 7  # type: ignore[attr-defined]
    assert told[0] is not first[0]
    assert all(a is b for a, b in zip(first[1:], told[1:], strict=True))
    told = after(1_300_000, 1, WatermarkStatus(True))
    assert told[1].idle  # type: ignore[attr-defined]
    told = after(1_400_000, 1, EndOfStream())
    assert told[1].finished  # type: ignore[attr-defined]
    job.cancel()
