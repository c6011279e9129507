"""Checkpoint storage: in a directory on any file system, or in memory for jobs that need not outlive their process.

``base`` is the interface, with the implementations ``directory`` and ``memory``. ``directory`` uses ``files`` for the
file system, ``holding`` for ownership, ``state_parts`` for files that several checkpoints share, and ``reading``, which
read-only access also uses.

Belongs here: where checkpoints are stored, how their files are written and read, and who owns them.
Does not: when checkpoints are taken and removed (``checkpoints``).
"""

from workbench.durable.holder import Holder
from workbench.runtime.storage.base import CheckpointStorage
from workbench.runtime.storage.directory import DirectoryStorage
from workbench.runtime.storage.held import HeldError
from workbench.runtime.storage.locations import folder_named, lasting, open_files
from workbench.runtime.storage.manifest import Manifest, StateFile, StatePart, check_name, folder_of, is_name, is_place
from workbench.runtime.storage.memory import MemoryStorage
from workbench.runtime.storage.reading import CheckpointReader

__all__ = [
    "CheckpointReader",
    "CheckpointStorage",
    "DirectoryStorage",
    "HeldError",
    "Holder",
    "Manifest",
    "MemoryStorage",
    "StateFile",
    "StatePart",
    "check_name",
    "folder_named",
    "folder_of",
    "is_name",
    "is_place",
    "lasting",
    "open_files",
]
