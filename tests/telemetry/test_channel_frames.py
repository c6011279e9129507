"""Frames of channels, kept as columns: each shows its channel at that moment, also when it is read later."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench.elements import EndOfStream, Watermark, WatermarkStatus
from workbench.runtime.exchange.channel import Channel
from workbench.telemetry.channels import ChannelFrames, ChannelSampler


def test_frames_tell_what_changed_and_stay_as_they_were() -> None:
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
    assert sampler.sample(execution, 1_100_000) == first

    def after(now_us: int, at: int, *elements: object) -> ChannelFrames:
        channel: Channel = execution.channels[at]
        for element in elements:
            channel.push(element)  # type: ignore[arg-type]
        task = next(task for task in execution.tasks if task.name == channel.target)
        while channel.elements:
            task.step()
        return sampler.sample(execution, now_us)

    told = after(1_200_000, 0, Watermark(7))
    assert told[0].currentChannelWatermark == 7
    assert told != first
    assert first[0].currentChannelWatermark is None
    assert told[1:] == first[1:]
    told = after(1_300_000, 1, WatermarkStatus(True))
    assert told[1].idle
    told = after(1_400_000, 1, EndOfStream())
    assert told[1].finished
    assert pickle.loads(pickle.dumps(told)) == told
    edges = {channel.edge for channel in execution.channels}
    assert told.sums() == {
        edge: (
            sum(one.inputQueueLength + one.outputQueueLength for one in told if one.edge == edge),
            sum(one.capacity for one in told if one.edge == edge),
            sum(one.records_per_second for one in told if one.edge == edge),
        )
        for edge in edges
    }
    job.cancel()
