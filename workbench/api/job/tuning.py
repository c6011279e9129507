"""What `Job.tune` was asked: all of it is checked before any of it is applied."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from workbench.durations import parse_speed
from workbench.errors import JobError, PlanError, SettingError, unknown
from workbench.plan.physical import PhysicalGraph, build_physical_graph
from workbench.runtime.checkpoints.rescaling import check_rescalable
from workbench.runtime.job.master import Master
from workbench.runtime.settings.settings import TUNABLE, Settings
from workbench.state import default_max_parallelism


@dataclass(frozen=True, slots=True)
class Tuning:
    """Changes that a running job can take.

    Attributes:
        settings: by name, as people write them.
        speed: of the replay; None: as it is.
        rates: by source, records per second or None for full speed.
        parallelism: None: as it is.
    """

    settings: Mapping[str, object]
    speed: float | None
    rates: Mapping[str, float | None]
    parallelism: int | None

    @staticmethod
    def of(master: Master, values: Mapping[str, object]) -> Tuning:
        """Check what a person wrote.

        Raises:
            SettingError: an unknown setting, a bad value, or one that this job has no use for.
        """
        plain: dict[str, object] = {}
        speed: float | None = None
        rates: Mapping[str, float | None] = {}
        parallelism: int | None = None
        for name, value in values.items():
            if name not in TUNABLE:
                raise SettingError(unknown("setting", name, TUNABLE))
            if name == "speed":
                speed = parse_replay_speed(bool(master.services.paces), value)
            elif name == "rate":
                rates = _rates(value, list(master.services.rates))
            elif name == "parallelism":
                parallelism = master.settings.with_value(name, value).parallelism
            else:
                plain[name] = value
        after, before = _with(master.settings, plain).fault_tolerance, master.settings.fault_tolerance
        if after is not before and (fixed := next((each for each in (before, after) if not each.tunable), None)):
            raise SettingError(
                f"checkpoint_mode is {before.name!r}, and {fixed.name!r} holds for a whole run: start the job again "
                f"with checkpoint_mode={after.name!r}"
            )
        return Tuning(plain, speed, rates, parallelism)

    def apply(self, master: Master) -> None:
        """Put everything but the parallelism in force; called on the master's turn.

        Raises:
            SettingError: somebody else has tuned meanwhile, and the settings do not go together any more.
        """
        changed = _with(master.settings, self.settings)
        if self.settings:
            shown = changed.shown()
            master.apply(changed, ", ".join(f"{name} = {shown[name]}" for name in self.settings))
        if self.speed is not None:
            master.sources.set_speed(self.speed)
        if self.rates:
            master.sources.set_rates(self.rates)


def _with(settings: Settings, values: Mapping[str, object]) -> Settings:
    """These settings, some of them changed; raises as `Settings.check`."""
    for name, value in values.items():
        settings = settings.with_value(name, value)
    return settings.check()


def parse_replay_speed(replays: bool, value: object) -> float:
    """The speed that a person wrote, for a job that replays something.

    Args:
        replays: whether it does.
        value: what was written.

    Raises:
        SettingError: it replays nothing, or this is no speed.
    """
    if not replays:
        raise SettingError("speed can be set for a replayed history only, and this job replays none")
    return parse_speed(value)  # type: ignore[arg-type]


def plan_for(job: str, master: Master, parallelism: int) -> PhysicalGraph:
    """The plan by which a job goes on at another parallelism.

    Raises:
        JobError: it cannot go on from a checkpoint.
        PlanError: it cannot run at this parallelism.
    """
    check_rescalable(job, master.logical)
    if master.state not in ("RUNNING", "RESTARTING"):
        raise JobError(f"the job {job!r} is {master.state}: rescale it while it runs")
    settings, most = master.settings, master.graph.max_parallelism
    if parallelism > most:
        raise PlanError(
            f"parallelism is {parallelism}, and the job runs with max_parallelism {most}: take a savepoint and start "
            f"from it with max_parallelism {default_max_parallelism(parallelism)}"
        )
    return build_physical_graph(
        master.logical,
        parallelism,
        settings.slots_per_taskmanager,
        local_aggregation=settings.local_aggregation is not None,
        max_parallelism=most,
    )


def _rates(value: object, sources: list[str]) -> dict[str, float | None]:
    """``50_000``, ``"max"``, ``"clicks:50000"`` or ``{"clicks": 50_000, "views": "max"}`` as rates by source."""
    if not sources:
        raise SettingError(
            "rate can be set for sources that read at a rate, and this job has none; a replay has a speed"
        )
    if isinstance(value, str) and ":" in value:
        uid, _, rate = value.rpartition(":")
        value = {uid: rate}
    if not isinstance(value, Mapping):
        return dict.fromkeys(sources, _rate(value))
    for uid in value:
        if uid not in sources:
            raise SettingError(unknown("source with a rate", uid, sources))
    return {str(uid): _rate(rate) for uid, rate in value.items()}


def _rate(value: object) -> float | None:
    if isinstance(value, str) and value.strip().lower() == "max":
        return None
    try:
        rate = math.nan if isinstance(value, bool | np.bool_) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        rate = math.nan
    if not 0 < rate < math.inf:
        raise SettingError(f"rate is {value!r}: write records per second, above zero, or 'max' for full speed")
    return rate
