"""Fault tolerance as a value: what the rest of the product asks of a checkpoint mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from workbench.connectors.contract.base import Guarantee
from workbench.elements import CheckpointBarrier
from workbench.errors import SettingError, unknown
from workbench.plan.guarantee import STRENGTHS
from workbench.runtime.barriers.snapshots import Takes
from workbench.runtime.exchange.input_gate import InputChannel, InputGate


class BarrierHandler(Protocol):
    """What a task with inputs does with the barriers of one policy, as long as they have overtaken nothing."""

    def on_barrier(self, channel: InputChannel, barrier: CheckpointBarrier, now_us: int) -> None:
        """A barrier came in on a channel."""
        ...

    def on_end(self, channel: InputChannel, now_us: int) -> None:
        """A channel has ended; it will bring no barrier."""
        ...

    def on_abort(self, checkpoint_id: int) -> None:
        """A checkpoint was given up."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultTolerance:
    """A fault-tolerance policy: what tasks do at a barrier, and what a failure does to the results.

    A policy is one value, and one entry in the table of policies (`register_fault_tolerance`).

    Source: F2-9 to F2-15 for aligned barriers and the at-least-once mode.

    Args:
        name: as people write it, ``checkpoint_mode="exactly-once"``.
        title: a word for its checkpoints, such as ``"aligned"``.
        help: what goes on in this mode, as a clause that follows its name and a colon.
        guarantee: how often a record counts after a failure.
        aligned: a checkpoint holds everything before its barriers and nothing behind them, and nothing in flight.
        overtakes: barriers overtake the records in flight, which become part of the checkpoint.
        stops_sources: sources read nothing until the checkpoint is complete.
        switches: ``aligned_checkpoint_timeout`` applies: a barrier that takes longer overtakes.
        one_at_a_time: why ``max_concurrent_checkpoints`` must be 1; empty: several may be in progress.
        periodic: checkpoints are taken at ``checkpoint_interval``; otherwise only those that somebody asks for, and
            the final one.
        replays: after a failure sources read again from the latest checkpoint; otherwise they go on behind what they
            have read, and the operators begin anew.
        tunable: a running job can change to it and from it.
        barriers: makes a task's handler from its input gate and its snapshots; None: barriers are aligned. Policies
            with the same function share one handler, so a barrier of one ends what an older one of another began.

    Raises:
        SettingError: an unknown guarantee.

    Example:
        >>> from workbench.runtime.barriers.policies import fault_tolerance
        >>> fault_tolerance("unaligned").overtakes, fault_tolerance("at-least-once").guarantee
        (True, 'at-least-once')
    """

    name: str
    title: str
    help: str
    guarantee: Guarantee = "exactly-once"
    aligned: bool = True
    overtakes: bool = False
    stops_sources: bool = False
    switches: bool = False
    one_at_a_time: str = ""
    periodic: bool = True
    replays: bool = True
    tunable: bool = True
    barriers: Callable[[InputGate, Takes], BarrierHandler] | None = None

    def __post_init__(self) -> None:
        if self.guarantee not in STRENGTHS:
            raise SettingError(unknown("guarantee", self.guarantee, STRENGTHS))
