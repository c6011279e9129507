"""How checkpoints are taken now, as Flink's tab *Configuration* has it: what is in force, not what was set first."""

from __future__ import annotations

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import table
from workbench.runtime.barriers.policies import POLICIES
from workbench.telemetry.frames import Frame


def options(frame: Frame) -> list[tuple[str, str]]:
    """Flink's options and their values, as text.

    Example:
        >>> frame = Frame("j", "RUNNING", 0, 0, 0, {"checkpoint_mode": "unaligned", "checkpoint_interval": "5s"}, {})
        >>> dict(options(frame))["Unaligned Checkpoints"]
        'Enabled'
    """
    mode = _setting(frame, "checkpoint_mode")
    aligned_timeout = _setting(frame, "aligned_checkpoint_timeout")
    interval = _setting(frame, "checkpoint_interval")
    how = frame.checkpointing
    return [
        ("Checkpointing Mode", _mode(mode)),
        ("Checkpoint Storage", wording.NOTHING if how is None else how.storage or "memory of this process"),
        ("State Backend", wording.NOTHING if how is None else _backend(how.on_disk)),
        ("Interval", "Periodic checkpoints disabled" if interval == "disabled" else interval),
        ("Timeout", _setting(frame, "checkpoint_timeout")),
        ("Minimum Pause Between Checkpoints", _setting(frame, "min_pause")),
        ("Maximum Concurrent Checkpoints", _setting(frame, "max_concurrent_checkpoints")),
        ("Unaligned Checkpoints", _unaligned(mode, aligned_timeout)),
        ("Aligned Checkpoint Timeout", aligned_timeout),
        ("Persist Checkpoints Externally", wording.NOTHING if how is None else _persisted(frame, how.storage)),
        ("Tolerable Failed Checkpoints", _tolerable(frame)),
        ("Incremental Checkpoints", wording.NOTHING if how is None else _incremental(how.incremental)),
    ]


def html(frame: Frame) -> str:
    """The options as a table."""
    rows = (
        f"<tr><th scope='row'>{option}</th><td>{wording.html_text(value)}</td></tr>" for option, value in options(frame)
    )
    return table(("Option", "Value"), rows)


def _setting(frame: Frame, name: str) -> str:
    value = frame.settings.get(name)
    return wording.NOTHING if value is None else str(value)


def _mode(mode: str) -> str:
    if mode == wording.NOTHING:
        return mode
    policy = POLICIES.get(mode)
    guarantee = mode if policy is None else policy.guarantee
    return guarantee.replace("-", " ").title() + ("" if mode == guarantee else f" ({mode})")


def _backend(on_disk: tuple[str, ...]) -> str:
    return f"on disk (RocksDB) for {', '.join(on_disk)}; else in memory" if on_disk else "in memory"


def _unaligned(mode: str, aligned_timeout: str) -> str:
    policy = POLICIES.get(mode)
    if policy is not None and policy.overtakes:
        return "Enabled"
    if policy is not None and policy.switches and aligned_timeout not in ("disabled", wording.NOTHING):
        return f"Enabled after {aligned_timeout} of alignment"
    return wording.NOTHING if mode == wording.NOTHING else "Disabled"


def _persisted(frame: Frame, storage: str) -> str:
    kept = _setting(frame, "retained_checkpoints")
    return f"Enabled (retain on cancellation, the newest {kept})" if storage else f"Disabled (the newest {kept} kept)"


def _tolerable(frame: Frame) -> str:
    if "tolerable_failed_checkpoints" not in frame.settings:
        return wording.NOTHING
    value = frame.settings["tolerable_failed_checkpoints"]
    return "any number" if value is None else str(value)


def _incremental(incremental: bool) -> str:
    return "Enabled (large tables of state)" if incremental else "Disabled"
