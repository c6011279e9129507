"""The checkpoint settings of a simulated job, drawn like everything else, and their effect on its results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random

from workbench.lab.pipelines.comparing import Outputs
from workbench.lab.pipelines.topologies import Trial
from workbench.runtime.barriers.acks import ACKS, GRANULARITIES, acks
from workbench.runtime.barriers.architectures import ARCHITECTURES
from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.barriers.micro_batches import MICRO_BATCHES, STATES, micro_batches
from workbench.runtime.barriers.policies import POLICIES
from workbench.runtime.barriers.transactions import TRANSACTIONS, transactions
from workbench.runtime.settings.settings import Settings


def draw_checkpointing(chance: Random, settings: Settings) -> Settings:
    """These settings with a drawn mode, and settings that suit it.

    Example:
        >>> drawn = [draw_checkpointing(Random(seed), Settings()) for seed in range(40)]
        >>> {settings.checkpoint_mode for settings in drawn} == set(POLICIES)
        True
        >>> all(settings == settings.check() for settings in drawn)
        True
    """
    return _drawn(chance, settings, POLICIES.values())


def draw_exactly_once(chance: Random, settings: Settings) -> Settings:
    """The same, with a mode after which nothing is counted twice."""
    return _drawn(chance, settings, [policy for policy in POLICIES.values() if policy.guarantee == "exactly-once"])


def _drawn(chance: Random, settings: Settings, policies: Iterable[FaultTolerance]) -> Settings:
    policy = chance.choice([policy for policy in policies for _ in range(1 + (policy.switches or policy.overtakes))])
    timeout_us = chance.choice((None, 0, 300, 3_000)) if policy.switches else None
    several = timeout_us is None and not policy.one_at_a_time
    return replace(
        settings,
        checkpoint_mode=policy.name,
        aligned_checkpoint_timeout_us=timeout_us,
        max_concurrent_checkpoints=chance.choice((1, 2, 4)) if several else 1,
        # A pipeline whose sources stop again as soon as they resume makes no progress.
        min_pause_us=5_000 if policy.stops_sources else chance.choice((0, 0, 1_000)),
    )


def draw_architecture(chance: Random, settings: Settings, name: str) -> Settings:
    """These settings with an architecture of fault tolerance in place of the drawn checkpoint mode.

    Example:
        >>> drawn = [draw_architecture(Random(seed), Settings(), "changelog").policy for seed in range(9)]
        >>> all(policy.offset_interval_us > policy.interval_us for policy in drawn)
        True
    """
    if name == ACKS.name:
        return _draw_acks(chance, settings)
    interval_us = chance.choice((500, 2_000))
    if name == TRANSACTIONS.name:
        policy = transactions(chance.choice((1, 1, 3, 20)))
        settings = replace(settings, checkpoint_interval_us=interval_us)
    elif name == MICRO_BATCHES.name:
        policy = micro_batches(
            timedelta(microseconds=interval_us),
            chance.choice((3, 20, 1_000_000)),
            chance.choice((1, 2, 4)),
            chance.choice(STATES),
        )
    else:
        policy = ARCHITECTURES[name](timedelta(microseconds=interval_us))
    if policy.offset_interval_us is not None:
        policy = replace(policy, offset_interval_us=interval_us * chance.choice((2, 5, 20)))
    return replace(
        settings,
        fault_tolerance=policy,
        checkpoint_mode=Settings().checkpoint_mode,
        aligned_checkpoint_timeout_us=None,
        max_concurrent_checkpoints=1 if policy.one_at_a_time else settings.max_concurrent_checkpoints,
        min_pause_us=5_000 if policy.stops_sources else settings.min_pause_us,
    )


def draw_store(chance: Random, settings: Settings, folder: Path) -> Settings:
    """These settings, where tasks write transactions sometimes with a store in a file of this folder.

    Example:
        >>> drawn = draw_architecture(Random(1), Settings(), "transactions")
        >>> stores = {str(draw_store(Random(seed), drawn, Path("/tmp")).policy) for seed in range(20)}
        >>> len(stores)
        2
    """
    policy = settings.policy
    if policy.transactions is None or chance.random() < _IN_MEMORY:
        return settings
    knobs = policy.transactions
    url = f"sqlite:///{folder}/store.db"
    return replace(settings, fault_tolerance=transactions(knobs.coalesce, knobs.strong, url))


_IN_MEMORY = 0.3


def _draw_acks(chance: Random, settings: Settings) -> Settings:
    """These settings with acknowledgements: roots of both sizes, and time-outs that are short for some queues."""
    buffer_us = min(settings.buffer_timeout_us or 0, 5_000)
    policy = acks(
        chance.choice((1, 1, 2, 3)),
        chance.choice(GRANULARITIES),
        timedelta(microseconds=4 * buffer_us + chance.choice((200, 2_000, 200_000))),
        chance.choice((1, 5, 1_000, None)),
    )
    return replace(
        settings,
        fault_tolerance=policy,
        buffer_timeout_us=buffer_us,
        checkpoint_mode=Settings().checkpoint_mode,
        aligned_checkpoint_timeout_us=None,
    )


def verify_rows(trial: Trial, outputs: Outputs, policy: FaultTolerance, counted_twice: int) -> list[str]:
    """The errors in the rows of a run, given how many records it has counted twice.

    Without any, the rows must be those of the model, unless the policy may lose records. Otherwise no more rows may be
    missing or surplus than that number explains; if rows are not records, one record more or less may change any of
    them, and nothing is compared.
    """
    found = trial.verify(outputs)  # called in any case: it may check more than differences
    if not counted_twice and policy.replays:
        return found
    if trial.records is None:
        return []
    sink, expected = trial.records
    problems = []
    if policy.replays and (lost := expected - outputs[sink]):
        problems.append(f"{sink}: {lost.total()} rows are missing")
    if (extra := (outputs[sink] - expected).total()) > counted_twice:
        problems.append(f"{sink}: {extra} surplus rows, but only {counted_twice} records were counted twice")
    return problems
