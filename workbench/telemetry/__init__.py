"""Metrics of a job: the sampler reads its counts into immutable frames, and the recorder keeps the most recent ones.

Belongs here: frames, sampling, rates, percentiles, the flight recorder, the diagnosis of backpressure.
Does not: drawing.
"""

from workbench.telemetry.frames import Frame
from workbench.telemetry.recorder import Recorder

__all__ = ["Frame", "Recorder"]
