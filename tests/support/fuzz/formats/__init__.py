"""Everything that is read from outside, a file for each kind."""

from __future__ import annotations

from collections.abc import Mapping

from ..trial import Format
from .checkpoints import Checkpoints, Records, Restored, Resumed
from .comm_messages import CommMessages
from .expressions import Expressions
from .messages import ArrowMessages, AvroMessages, CsvMessages, JsonMessages, RawMessages
from .parquet_files import ParquetFiles
from .postgresql_messages import PostgresMessages
from .recordings import Recordings
from .replay_log import ReplayLogs
from .sql_addresses import SqlAddresses
from .text_files import CsvFiles, JsonFiles
from .words import Words

_ALL: tuple[type[Format], ...] = (
    ArrowMessages,
    AvroMessages,
    CsvMessages,
    JsonMessages,
    RawMessages,
    Checkpoints,
    CommMessages,
    SqlAddresses,
    Words,
    CsvFiles,
    Expressions,
    Records,
    Restored,
    Resumed,
    JsonFiles,
    ParquetFiles,
    PostgresMessages,
    Recordings,
    ReplayLogs,
)

FORMATS: Mapping[str, type[Format]] = {one.name: one for one in _ALL}
