"""I2 and I3: a channel is first in, first out, without a gap, and its barriers increase."""

from __future__ import annotations

from workbench.elements import CheckpointBarrier, Element, Watermark
from workbench.lab.invariants.invariant import Invariant
from workbench.runtime.exchange.channel import Channel


class OrderOnChannels(Invariant):
    """Runs before the model: compares each element with what came before it."""

    def sent(self, channel: Channel, element: Element) -> None:
        line = self.model.lines[id(channel)]
        if line.ended:
            self.violated("I2", f"{line}: {type(element).__name__} after the end of the stream")
        match element:
            case Watermark(timestamp_us) if timestamp_us < line.watermark_sent:
                self.violated("I4", f"{line}: watermark {timestamp_us} after {line.watermark_sent}")
            case CheckpointBarrier(checkpoint_id) if checkpoint_id < line.barrier_sent + (element.behind is None):
                self.violated("I3", f"{line}: barrier {checkpoint_id} after {line.barrier_sent}")

    def received(self, channel: Channel, element: Element) -> None:
        line = self.model.lines[id(channel)]
        if not line.queue or line.queue[0] is not element:
            self.violated("I2", f"{line}: {type(element).__name__} out of order")
