"""Defects that are planted, one at a time: the inputs must find each of them."""

from __future__ import annotations

import json
from typing import Any

from workbench.connectors.replay import log as replay_log
from workbench.connectors.replay import manifest as replay_manifest
from workbench.telemetry import recording


def replay_paths_are_joined_unchecked() -> None:
    """A manifest may name files anywhere."""
    replay_manifest._checked = lambda channels: channels
    replay_log.size_of_regular = lambda folder, name: (folder / name).stat().st_size


def recorded_types_are_not_checked() -> None:
    """Frames are made of whatever stands there."""
    made = recording.made

    def trusting(kind: Any, value: Any, *rest: Any, **more: Any) -> Any:
        return kind(**value) if kind is recording.Frame else made(kind, value, *rest, **more)

    recording.made = trusting


def recorded_lines_are_unbounded() -> None:
    """A line may unpack to any length."""
    recording._LINE_MAX = 1 << 40


def depth_is_unchecked() -> None:
    """JSON that is nested too deeply is no error of ours."""
    recording.parsed = replay_manifest.parsed = json.loads
