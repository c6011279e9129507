"""Several jobs as one: the interface of a job that a display needs, answered from the newest frames of all jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

from workbench.dashboard.contract.job_port import OVER, Watched
from workbench.dashboard.contract.view_table import ViewSpec
from workbench.telemetry.frames import Frame

LANES = ViewSpec(
    "lanes", "Side by side", "Live jobs of one pipeline on common axes, with the controls of each",
    "workbench.dashboard.lanes.lanes_part:LanesPart",
)  # fmt: skip
"""The view; no other job has it, so it is not in the table."""


class Lanes:
    """Jobs of one pipeline, by the names of their lanes.

    What differs between lanes is up to their jobs: settings, or whatever else a run is given.

    Attributes:
        jobs: by lane, the one that the others are compared with first.
        name: of all of them together.
        live: they go on by themselves.
    """

    live = True

    def __init__(self, jobs: Mapping[str, Watched]) -> None:
        self.jobs = dict(jobs)
        self.name = " | ".join(jobs)
        self.recorder = self

    @property
    def state(self) -> str:
        """RUNNING while any of them goes on, then that of the first."""
        frame = self.latest()
        return "CREATED" if frame is None else frame.state

    def newest(self) -> dict[str, Frame]:
        """The newest frame of each lane that has one."""
        found = {lane: job.recorder.latest() for lane, job in self.jobs.items()}
        return {lane: frame for lane, frame in found.items() if frame is not None}

    def latest(self) -> Frame | None:
        """The first lane's frame, with what has happened in all of them, in the state of one that goes on, and new when
        any lane's is."""
        frames = self.newest()
        if not frames:
            return None
        first = next(iter(frames.values()))
        going = next((frame.state for frame in frames.values() if frame.state not in OVER), first.state)
        return replace(
            first,
            job=self.name,
            state=going,
            sequence=sum(frame.sequence for frame in frames.values()),
            time_us=max(frame.time_us for frame in frames.values()),
            backpressure="",
            findings=tuple(f"{lane}: {told}" for lane, frame in frames.items() for told in frame.findings),
            events=_of_all(frames, "events", "time_us", "text"),
            changes=_of_all(frames, "changes", "time_us", "what", "sentence"),
            interruptions=_of_all(frames, "interruptions", "start_us", "what", "sentence"),
        )

    def frames(self, after: int = -1) -> tuple[Frame, ...]:
        """The newest alone: the part reads the history of each lane itself."""
        frame = self.latest()
        return () if frame is None or frame.sequence <= after else (frame,)

    def history(self) -> list[tuple[int, dict[str, Frame]]]:
        """Past moments of the first lane, each with the frame that every lane had then; oldest first."""
        past = {lane: job.recorder.frames() for lane, job in self.jobs.items()}
        at = dict.fromkeys(past, -1)
        found: list[tuple[int, dict[str, Frame]]] = []
        for frame in next(iter(past.values())):
            for lane, frames in past.items():
                while at[lane] + 1 < len(frames) and frames[at[lane] + 1].time_us <= frame.time_us:
                    at[lane] += 1
            then = {lane: frames[at[lane]] for lane, frames in past.items() if at[lane] >= 0}
            found.append((frame.time_us, then))
        return found

    def savepoints(self) -> list[str]:
        """None of all of them together."""
        return []

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{name}: ask one of the jobs, {', '.join(self.jobs)}")


def _of_all(frames: Mapping[str, Frame], name: str, time: str, *texts: str) -> tuple[Any, ...]:
    """What these frames have in an attribute, in the order of time; its texts begin with the lane."""
    found = [
        replace(one, **{text: f"{lane}: {getattr(one, text)}" for text in texts})
        for lane, frame in frames.items()
        for one in getattr(frame, name)
    ]
    return tuple(sorted(found, key=attrgetter(time)))
