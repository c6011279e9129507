"""Everything that is read from outside, a file for each kind."""

from __future__ import annotations

from collections.abc import Mapping

from ..trial import Format
from .recordings import Recordings
from .replay_log import ReplayLogs

_ALL: tuple[type[Format], ...] = (Recordings, ReplayLogs)

FORMATS: Mapping[str, type[Format]] = {one.name: one for one in _ALL}
