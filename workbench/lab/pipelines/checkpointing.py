"""How the checkpoints of a simulated job are taken, drawn like everything else, and what that means for its results."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from workbench.elements import CheckpointMode
from workbench.lab.pipelines.comparing import Outputs
from workbench.lab.pipelines.topologies import Trial
from workbench.runtime.settings.settings import Settings


def draw_checkpointing(chance: Random, settings: Settings) -> Settings:
    """These settings with a mode, and what goes with it.

    Example:
        >>> drawn = [draw_checkpointing(Random(seed), Settings()) for seed in range(40)]
        >>> sorted({settings.checkpoint_mode for settings in drawn})
        ['at-least-once', 'exactly-once', 'stop-the-world', 'unaligned']
        >>> all(settings == settings.check() for settings in drawn)
        True
    """
    return draw_exactly_once(chance, settings, others=("at-least-once",))


def draw_exactly_once(chance: Random, settings: Settings, others: tuple[CheckpointMode, ...] = ()) -> Settings:
    """As above, with a mode after which nothing is counted twice."""
    exact: tuple[CheckpointMode, ...] = ("exactly-once", "exactly-once", "unaligned", "unaligned", "stop-the-world")
    mode = chance.choice((*exact, *others))
    timeout_us = chance.choice((None, 0, 300, 3_000)) if mode == "exactly-once" else None
    several = timeout_us is None and mode in ("exactly-once", "at-least-once")
    return replace(
        settings,
        checkpoint_mode=mode,
        aligned_checkpoint_timeout_us=timeout_us,
        max_concurrent_checkpoints=chance.choice((1, 2, 4)) if several else 1,
        # A world that is stopped again as soon as it goes on comes to no end.
        min_pause_us=5_000 if mode == "stop-the-world" else chance.choice((0, 0, 1_000)),
    )


def verify_counted_twice(trial: Trial, outputs: Outputs, counted_twice: int) -> list[str]:
    """What is wrong with the rows of a run that knows how many records it has counted twice.

    Without any the rows are those of the model. Otherwise nothing may be missing, and no more may be too many than the
    run says; where rows are not records, one record too many may change any of them, and nothing is compared.
    """
    found = trial.verify(outputs)  # asked in any case: it may look for more than differences
    if not counted_twice:
        return found
    if trial.records is None:
        return []
    sink, expected = trial.records
    problems = []
    if lost := expected - outputs[sink]:
        problems.append(f"{sink}: {lost.total()} rows are missing")
    if (extra := (outputs[sink] - expected).total()) > counted_twice:
        problems.append(f"{sink}: {extra} rows are too many, and only {counted_twice} records were counted twice")
    return problems
