"""Hot loops over arrays, compiled to machine code that runs without the interpreter lock.

Belongs here: a loop that runs once per record, takes and fills plain numpy arrays, and knows nothing of Arrow,
operators or keys' types. Each kernel has exactly one signature (see ``compiled``); ``warm_up`` makes all of them ready,
from the cache on disk where it can. Does not: anything that Arrow or numpy already does as fast.
"""

from workbench.compiled.folding.accumulate import fold_floats, fold_ints, running_floats, running_ints
from workbench.compiled.folding.counting import count_into_waves, number_rows
from workbench.compiled.folding.division import divide_by
from workbench.compiled.folding.merging import merge_cells
from workbench.compiled.folding.rolling import roll_keys, roll_slots
from workbench.compiled.folding.sessions import place_in_sessions
from workbench.compiled.folding.substring import find_literal
from workbench.compiled.folding.windows import place_in_tumbling
from workbench.compiled.keys.hashing import hash_bytes, hash_ints, mix_hashes
from workbench.compiled.keys.joining import find_ranges, merge_rows, order_by_code, order_by_time
from workbench.compiled.keys.key_table import add_keys, find_keys, rehash
from workbench.compiled.keys.packing import packs_at_once
from workbench.compiled.keys.partition import route, scatter
from workbench.compiled.keys.selection import choose_rows
from workbench.compiled.keys.spreading import spread
from workbench.compiled.warm_up import is_warm, warm_up

__all__ = [
    "add_keys",
    "choose_rows",
    "count_into_waves",
    "divide_by",
    "find_keys",
    "find_literal",
    "find_ranges",
    "fold_floats",
    "fold_ints",
    "hash_bytes",
    "hash_ints",
    "is_warm",
    "merge_cells",
    "merge_rows",
    "mix_hashes",
    "number_rows",
    "order_by_code",
    "order_by_time",
    "packs_at_once",
    "place_in_sessions",
    "place_in_tumbling",
    "rehash",
    "roll_keys",
    "roll_slots",
    "route",
    "running_floats",
    "running_ints",
    "scatter",
    "spread",
    "warm_up",
]
