"""Keyed state: what a function declares of it, which subtask owns a key, and where the state of a key lies.

``key_columns`` says which columns can be keys, ``key_groups`` who owns a key (the hash exchange and rescaling),
``key_index`` which dense code a key has.

Belongs here: keys, key groups, what state can be declared, and where the state of a key lies.
Does not: what an operator keeps for a key.
"""

from workbench.state.descriptors import (
    AggregatingState,
    BroadcastState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)
from workbench.state.layout import State

__all__ = ["AggregatingState", "BroadcastState", "ListState", "MapState", "ReducingState", "State", "ValueState"]


def __dir__() -> list[str]:
    """What is for users: completion shows this and not the modules behind it."""
    return __all__
