"""Keyed state: its declaration, the subtask that owns a key, and the storage of a key's state.

``key_columns`` determines which columns can be keys, ``key_groups`` the owner of a key (the hash exchange and
rescaling), ``key_index`` the dense code of a key.

Belongs here: keys, key groups, declarations of state, and the storage of a key's state.
Does not: the state of particular operators.
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
    """The names for users: completion shows these and not the modules behind them."""
    return __all__
