"""Hot loops over arrays, compiled to machine code that runs without the interpreter lock.

What belongs here: a loop that runs once per record, takes and fills plain numpy arrays, and knows nothing of Arrow,
operators or keys' types. Each kernel has exactly one signature (see ``compiled``); ``warm_up`` makes all of them ready,
from the cache on disk where it can. What does not belong here: anything that Arrow or numpy already does as fast.
"""

from workbench.kernels.accumulate import fold_floats, fold_ints, running_floats, running_ints
from workbench.kernels.counting import count_into_waves, number_rows
from workbench.kernels.division import divide_by
from workbench.kernels.hashing import hash_bytes, hash_ints, mix_hashes
from workbench.kernels.joining import find_ranges, merge_rows, order_by_code, order_by_time
from workbench.kernels.key_table import add_keys, find_keys, rehash
from workbench.kernels.merging import merge_cells
from workbench.kernels.packing import packs_at_once
from workbench.kernels.partition import route, scatter
from workbench.kernels.rolling import roll_keys, roll_slots
from workbench.kernels.selection import choose_rows
from workbench.kernels.sessions import place_in_sessions
from workbench.kernels.spreading import spread
from workbench.kernels.substring import find_literal
from workbench.kernels.warm_up import is_warm, warm_up
from workbench.kernels.windows import place_in_tumbling

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
