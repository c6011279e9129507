"""Fault tolerance as a value: what the rest of the product asks of a checkpoint mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from workbench.connectors.contract.base import Guarantee
from workbench.elements import CheckpointBarrier
from workbench.errors import SettingError, unknown
from workbench.plan.guarantee import STRENGTHS
from workbench.redaction import redacted
from workbench.runtime.barriers.acking import Acking
from workbench.runtime.barriers.snapshots import Takes
from workbench.runtime.exchange.input_gate import InputChannel, InputGate

if TYPE_CHECKING:
    from workbench.runtime.barriers.micro_batches import Batched
    from workbench.runtime.barriers.transactions import Transactional


class BarrierHandler(Protocol):
    """What a task with inputs does with the barriers of one policy, until one of them overtakes records."""

    def on_barrier(self, channel: InputChannel, barrier: CheckpointBarrier, now_us: int) -> None:
        """A barrier has arrived on a channel."""

    def on_end(self, channel: InputChannel, now_us: int) -> None:
        """A channel has ended; no barrier will arrive on it."""

    def on_abort(self, checkpoint_id: int) -> None:
        """A checkpoint was aborted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultTolerance:
    """A fault-tolerance policy: what tasks do at a barrier, and what a failure does to the results.

    A policy is one value, and one entry in the table of policies (`register_fault_tolerance`).

    Source: F2-9 to F2-15 for aligned barriers and the at-least-once mode.

    Args:
        name: as users write it, ``checkpoint_mode="exactly-once"``.
        title: the adjective for its checkpoints, such as ``"aligned"``.
        help: what happens in this mode, as a clause that follows the name and a colon.
        guarantee: how often a record counts after a failure.
        aligned: a checkpoint holds everything before its barriers, nothing behind them, and no in-flight records.
        overtakes: barriers overtake the in-flight records, which become part of the checkpoint.
        stops_sources: sources read nothing until the checkpoint is complete.
        switches: ``aligned_checkpoint_timeout`` applies: a barrier that takes longer overtakes the records before it.
        one_at_a_time: why ``max_concurrent_checkpoints`` must be 1; empty: several may be in progress.
        periodic: checkpoints are taken at ``checkpoint_interval``; otherwise only on request and at the end of the job.
        replays: after a failure, sources read again from the latest checkpoint; otherwise they continue after the last
            record that they have read, and operators start with empty state.
        tunable: a running job can switch to this policy and away from it.
        interval_us: microseconds between its periodic checkpoints; None: `checkpoint_interval`.
        offset_interval_us: microseconds after which the sources save new positions; in between they save the last ones
            again while operators save their present state. None: positions and state belong together.
        outputs_only: periodic checkpoints hold no state of operators, only positions of sources and what sinks write.
        transactions: how tasks write transactions; None: they write none.
        knobs: the arguments it was made with, as users write them.
        barriers: creates a task's handler from its input gate and its snapshots; None: barriers are aligned. Policies
            with the same function share one handler, so a barrier of one policy ends an older alignment of another.
        acking: how records are acknowledged to their sources; None: they are not.
        batches: how records are cut into batches, each of which a checkpoint commits; None: they are not.
        live: the knobs that can be tuned while the job runs.
        via: the name of the policy whose barriers it sends; empty: its own.

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
    interval_us: int | None = None
    offset_interval_us: int | None = None
    outputs_only: bool = False
    transactions: Transactional | None = None
    knobs: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    barriers: Callable[[InputGate, Takes], BarrierHandler] | None = None
    acking: Acking | None = None
    batches: Batched | None = None
    live: tuple[str, ...] = ()
    via: str = ""

    def __post_init__(self) -> None:
        if self.guarantee not in STRENGTHS:
            raise SettingError(unknown("guarantee", self.guarantee, STRENGTHS))

    @property
    def mode(self) -> str:
        """The name of the policy that its barriers bear."""
        return self.via or self.name

    @property
    def reads_again(self) -> bool:
        """Whether after a failure the sources read on from the latest checkpoint, in which positions, state and what is
        in flight belong together."""
        others = (self.acking, self.batches, self.transactions, self.offset_interval_us)
        return self.replays and all(each is None for each in others)

    def __str__(self) -> str:
        """As users write it: its name, and its arguments, whose secrets are hidden."""
        knobs = ",".join(f"{knob}={redacted(value)}" for knob, value in self.knobs)
        return ":".join(filter(None, [self.name, knobs]))
