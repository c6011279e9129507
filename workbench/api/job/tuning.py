"""The changes of `Job.tune`: all of them are checked before any is applied."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from workbench.api.job.run import Run
from workbench.durations import Duration, parse_duration, parse_speed
from workbench.errors import JobError, PlanError, SettingError, unknown
from workbench.plan.acking import with_ackers
from workbench.plan.batchable import check_batches
from workbench.plan.physical import PhysicalGraph, build_physical_graph
from workbench.runtime.checkpoints.rescaling import Rescale, check_rescalable
from workbench.runtime.job.master import Master
from workbench.runtime.settings.architecture import KNOBS, tuned
from workbench.runtime.settings.table import TUNABLE, parse_rate
from workbench.state.key_groups import default_max_parallelism


@dataclass(frozen=True, slots=True)
class Tuning:
    """Changes that a running job can take.

    Attributes:
        settings: by name, as users write them.
        speed: of the replay; None: unchanged.
        rates: by source, records per second or None for full speed.
        parallelism: None: unchanged.
    """

    settings: Mapping[str, object]
    speed: float | None
    rates: Mapping[str, float | None]
    parallelism: int | None

    @staticmethod
    def of(master: Master, values: Mapping[str, object]) -> Tuning:
        """Check what a user wrote.

        Raises:
            SettingError: an unknown setting, an invalid value, or one that does not apply to this job.
        """
        plain: dict[str, object] = {}
        speed: float | None = None
        rates: Mapping[str, float | None] = {}
        parallelism: int | None = None
        policy, architecture = master.settings.policy, master.settings.fault_tolerance
        for name, value in values.items():
            if name in KNOBS:
                architecture = plain["fault_tolerance"] = tuned(architecture, name, value)
                continue
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
        if policy.interval_us is not None and "checkpoint_interval" in plain:
            raise SettingError(
                f"checkpoint_interval does not apply to fault_tolerance {str(policy)!r}, which has its own: start the "
                "job again without that argument to tune it"
            )
        after, before = master.settings.with_values(plain).policy, master.settings.policy
        if after.batches is not None:
            check_batches(master.logical, after.batches.interval_us)
        if after.name != before.name and (fixed := next((each for each in (before, after) if not each.tunable), None)):
            raise SettingError(
                f"checkpoint_mode is {before.name!r}, and {fixed.name!r} applies to a whole run: start the job again "
                f"with checkpoint_mode={after.name!r}"
            )
        return Tuning(plain, speed, rates, parallelism)

    def apply(self, master: Master) -> None:
        """Apply everything except the parallelism; called on the master's turn.

        Raises:
            SettingError: another change was made in the meantime, and the settings are no longer consistent.
        """
        changed = master.settings.with_values(self.settings)
        if self.settings:
            shown = changed.shown()
            master.apply(changed, ", ".join(f"{name} = {shown[name]}" for name in self.settings))
        if self.speed is not None:
            master.sources.set_speed(self.speed)
        if self.rates:
            master.sources.set_rates(self.rates)


def parse_replay_speed(replays: bool, value: object) -> float:
    """Parse the speed that a user wrote, for a job with a replay.

    Args:
        replays: whether the job has one.
        value: what was written.

    Raises:
        SettingError: there is no replay, or this is not a speed.
    """
    if not replays:
        raise SettingError("speed applies only to a replayed history, and this job replays none")
    return parse_speed(value)  # type: ignore[arg-type]


def tune(run: Run, values: Mapping[str, object]) -> None:
    """Change settings of a running job; see `Job.tune`."""
    run.check_running()
    tuning = Tuning.of(run.master, values)
    if tuning.parallelism is not None:
        run.check_outside()
        plan_for(run.name, run.master, tuning.parallelism)
    run.apply(tuning.apply)
    if tuning.parallelism is not None:
        rescale(run, tuning.parallelism, "60s")


def rescale(run: Run, parallelism: int, timeout: Duration) -> None:
    """Run a job at another parallelism; see `Job.rescale`."""
    run.check_running()
    run.check_outside()
    master = run.master
    wanted = master.settings.with_value("parallelism", parallelism).parallelism
    graph = plan_for(run.name, master, wanted)
    before = master.settings.parallelism
    if wanted == before:
        return
    reasons: list[str | None] = []
    ended = threading.Event()

    def done(reason: str | None) -> None:
        reasons.append(reason)
        ended.set()

    master.call(lambda: run.master.rescale(Rescale(wanted, graph, done)))
    if not run.driver.wait_for(ended, parse_duration(timeout, "timeout") / 1e6):
        run.check_running()
        raise JobError(
            f"the job {run.name!r} is not yet at parallelism {wanted} after {timeout}"
            + (run.held_up() or ": its checkpoint is still under way, see job.checkpoints()")
        )
    if reasons[0] is not None:
        raise JobError(f"the job {run.name!r} stays at parallelism {before}: {reasons[0]}")


def plan_for(job: str, master: Master, parallelism: int) -> PhysicalGraph:
    """The plan for a job at another parallelism.

    Raises:
        JobError: it cannot resume from a checkpoint.
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
    graph = build_physical_graph(
        master.logical,
        parallelism,
        settings.slots_per_taskmanager,
        local_aggregation=settings.local_aggregation is not None and not settings.ackers,
        max_parallelism=most,
    )
    return with_ackers(graph, settings.ackers)


def _rates(value: object, sources: list[str]) -> dict[str, float | None]:
    """``50_000``, ``"max"``, ``"clicks:50000"`` or ``{"clicks": 50_000, "views": "max"}`` as rates by source."""
    if not sources:
        raise SettingError(
            "rate applies only to sources that read at a rate, and this job has none; a replay has a speed"
        )
    if isinstance(value, str) and ":" in value:
        uid, _, rate = value.rpartition(":")
        value = {uid: rate}
    if not isinstance(value, Mapping):
        return dict.fromkeys(sources, parse_rate(value, "rate"))
    for uid in value:
        if uid not in sources:
            raise SettingError(unknown("source with a rate", uid, sources))
    return {str(uid): parse_rate(rate, "rate") for uid, rate in value.items()}
