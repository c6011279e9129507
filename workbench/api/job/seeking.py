"""Seeks to another place of a replayed history."""

from __future__ import annotations

from datetime import datetime

from workbench.api.job.run import Run
from workbench.connectors.live.hybrid_source import replayed
from workbench.durations import format_instant, parse_instant
from workbench.errors import JobError, SettingError


def seek(run: Run, position: str | datetime) -> None:
    """Seek to an arrival time; see `Job.seek`."""
    run.check_running()
    logs = [found.log for node in run.master.logical.nodes if (found := replayed(node.spec)) is not None]
    if not logs:
        raise JobError("seeking needs a replayed history, and this job replays none")
    position_us = parse_instant(position, "position")
    last_us = max(log.end_us for log in logs)
    if position_us > last_us:
        raise SettingError(
            f"position is {format_instant(position_us)}, after the last record: the history covers arrival times from "
            f"{format_instant(min(log.start_us for log in logs))} to {format_instant(last_us)}; job.stop() ends the job"
        )
    run.apply(lambda master: master.sources.seek(position_us, reading=master.reading))
