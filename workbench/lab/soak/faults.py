"""The faults of a job, drawn from a seed: each kind equally often, in random order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from types import MappingProxyType
from typing import Any

import workbench as wb
from workbench.lab.soak.patient import Patient
from workbench.lab.soak.work import OPERATORS

MODES: tuple[Mapping[str, Any], ...] = (
    {"checkpoint_mode": "exactly-once", "aligned_checkpoint_timeout": "disabled"},
    {"checkpoint_mode": "exactly-once", "aligned_checkpoint_timeout": "20ms"},
    {"checkpoint_mode": "unaligned", "aligned_checkpoint_timeout": "disabled"},
    {"checkpoint_mode": "stop-the-world", "aligned_checkpoint_timeout": "disabled"},
)
KNOBS: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {
        "buffer_timeout": ("5ms", "20ms", "100ms", "disabled"),
        "buffer_size": (1_024, 16_384, 262_144),
        "checkpoint_interval": ("300ms", "1s", "2s"),
        "min_pause": ("0ms", "200ms"),
        "retained_checkpoints": (1, 3, 5),
    }
)
PARALLELISMS = (1, 2, 3)
STALL_S = 1.0
SLOW_S = 1.0
SLOW_BY = ("1ms", "5ms", "20ms")
RESTART_MOST_S = 0.3
"""A second failure follows the first within this time: the job may be restarting, or may just have restarted."""

Deed = Callable[[Patient, Random], str]
"""Injects a fault into the job; returns its description."""


def _fail_task(patient: Patient, chance: Random) -> str:
    task = chance.choice(patient.tasks())
    patient.expect_restart(lambda job: job.fail(task))
    return task


def _fail_slot(patient: Patient, chance: Random) -> str:
    slot = chance.choice(patient.slots())
    patient.expect_restart(lambda job: job.faults.fail(slot=slot))
    return slot


def _fail_taskmanager(patient: Patient, chance: Random) -> str:
    taskmanager = chance.choice(sorted({slot.partition("/")[0] for slot in patient.slots()}))
    patient.expect_restart(lambda job: job.faults.fail(taskmanager=taskmanager))
    return taskmanager


def _fail_coordinator(patient: Patient, chance: Random) -> str:
    patient.expect_restart(lambda job: job.faults.fail(coordinator=True))
    return "the master"


def _fail_twice(patient: Patient, chance: Random) -> str:
    task, slot, pause_s = (
        chance.choice(patient.tasks()),
        chance.choice(patient.slots()),
        RESTART_MOST_S * chance.random(),
    )

    def fail(job: wb.types.Job) -> None:
        job.fail(task)
        patient.wait(pause_s)
        job.faults.fail(slot=slot)

    patient.expect_restart(fail)
    return f"{task}, {pause_s * 1_000:.0f} ms later {slot}"


def _stall(patient: Patient, chance: Random) -> str:
    operator = chance.choice(OPERATORS)
    patient.job.faults.stall(operator)
    patient.wait(STALL_S)
    patient.job.faults.stall(operator, False)
    return f"{operator}, {STALL_S:g} s"


def _slow_down(patient: Patient, chance: Random) -> str:
    operator, by = chance.choice(OPERATORS), chance.choice(SLOW_BY)
    patient.job.faults.slow_down(operator, by)
    patient.wait(SLOW_S)
    patient.job.faults.slow_down(operator, "0ms")
    return f"{operator}, {by} for each buffer, {SLOW_S:g} s"


def _tune(patient: Patient, chance: Random) -> str:
    name = chance.choice(sorted(KNOBS))
    value = chance.choice(KNOBS[name])
    patient.job.tune(**{name: value})
    return f"{name} {value}"


def _mode(patient: Patient, chance: Random) -> str:
    mode = chance.choice(MODES)
    patient.job.tune(**mode)
    return ", ".join(map(str, mode.values()))


def _rescale(patient: Patient, chance: Random) -> str:
    before = patient.parallelism()
    wanted = chance.choice([parallelism for parallelism in PARALLELISMS if parallelism != before])
    patient.job.rescale(wanted)
    return f"{before} to {wanted}"


def _savepoint(patient: Patient, chance: Random) -> str:
    return f"went on from {patient.go_on_from_a_savepoint()}"


def _stop(patient: Patient, chance: Random) -> str:
    patient.stop_and_resume()
    return "stopped and resumed"


KINDS: Mapping[str, Deed] = MappingProxyType(
    {
        "task fails": _fail_task,
        "slot fails": _fail_slot,
        "TaskManager fails": _fail_taskmanager,
        "coordinator fails": _fail_coordinator,
        "failure during recovery": _fail_twice,
        "stall": _stall,
        "slow down": _slow_down,
        "tune": _tune,
        "checkpoint mode": _mode,
        "rescale": _rescale,
        "savepoint": _savepoint,
        "stop and resume": _stop,
    }
)


def drawn(chance: Random) -> Iterator[str]:
    """An endless sequence of kinds: all of them in random order, again and again.

    Example:
        >>> from itertools import islice
        >>> sorted(islice(drawn(Random(1)), len(KINDS))) == sorted(KINDS)
        True
    """
    while True:
        yield from chance.sample(sorted(KINDS), len(KINDS))
