"""Keyed state: which subtask owns a key, and where the state of a key lies.

``key_columns`` says which columns can be keys, ``key_groups`` who owns a key (the hash exchange and rescaling),
``key_index`` which dense code a key has. Does not: what is kept per key; the operators decide that.

Belongs here: keys, key groups and where the state of a key lies.
Does not: what an operator keeps for a key.
"""

from workbench.state.key_groups import (
    KEY_GROUPS_LEAST,
    KEY_GROUPS_MOST,
    KeyPartitioner,
    default_max_parallelism,
    hash_keys,
    key_groups_of,
    owned_rows,
    subtask_of_group,
)
from workbench.state.key_index import KeyIndex

__all__ = [
    "KEY_GROUPS_LEAST",
    "KEY_GROUPS_MOST",
    "KeyIndex",
    "KeyPartitioner",
    "default_max_parallelism",
    "hash_keys",
    "key_groups_of",
    "owned_rows",
    "subtask_of_group",
]
