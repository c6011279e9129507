"""Hot loops over arrays, compiled to machine code that runs without the interpreter lock.

A kernel is a Python function of arrays with one signature (see ``machinery``). If an extension module with kernels
compiled ahead of time matches this processor and the kernels' sources (see ``native``), its functions are used and
numba is not even imported; otherwise numba compiles them when they are prepared (see ``warm_up``), with the same
results.

Belongs here: a loop that runs once per record, reads and fills plain numpy arrays, and does not depend on Arrow,
operators or the types of keys. Does not: anything that Arrow or numpy already does as fast.
"""

from typing import TYPE_CHECKING

from workbench.compiled.warm_up import KERNELS, READY, hearing, is_warm, packs_at_once, warm_up

if TYPE_CHECKING:
    from workbench.compiled.folding.accumulate import fold_floats, fold_ints, running_floats, running_ints
    from workbench.compiled.folding.counting import count_into_waves, number_rows
    from workbench.compiled.folding.division import divide_by
    from workbench.compiled.folding.merging import merge_cells
    from workbench.compiled.folding.rolling import roll_keys, roll_slots
    from workbench.compiled.folding.sessions import place_in_sessions
    from workbench.compiled.folding.substring import find_literal
    from workbench.compiled.folding.windows import place_in_tumbling
    from workbench.compiled.keys.best_rows import pick_best
    from workbench.compiled.keys.hashing import hash_bytes, hash_ints, mix_hashes
    from workbench.compiled.keys.joining import find_ranges, merge_rows, order_by_code, order_by_time
    from workbench.compiled.keys.key_table import add_keys, find_keys, rehash
    from workbench.compiled.keys.latest_rows import note_rows, order_by_row
    from workbench.compiled.keys.linking import (
        count_links,
        distinct_codes,
        follow_links,
        link_rows,
        take_equal,
        unlink_rows,
    )
    from workbench.compiled.keys.partition import route, scatter
    from workbench.compiled.keys.selection import choose_rows
    from workbench.compiled.keys.spreading import spread
    from workbench.compiled.keys.value_counting import count_values, mark_values
    from workbench.compiled.matching.chains import find_bound, list_bound, mark_bound
    from workbench.compiled.matching.stepping import step_matches
else:
    globals().update(KERNELS)

__all__ = [
    "KERNELS",
    "READY",
    "add_keys",
    "choose_rows",
    "count_into_waves",
    "count_links",
    "count_values",
    "distinct_codes",
    "divide_by",
    "find_bound",
    "find_keys",
    "find_literal",
    "find_ranges",
    "fold_floats",
    "fold_ints",
    "follow_links",
    "hash_bytes",
    "hash_ints",
    "hearing",
    "is_warm",
    "link_rows",
    "list_bound",
    "mark_bound",
    "mark_values",
    "merge_cells",
    "merge_rows",
    "mix_hashes",
    "note_rows",
    "number_rows",
    "order_by_code",
    "order_by_row",
    "order_by_time",
    "packs_at_once",
    "pick_best",
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
    "step_matches",
    "take_equal",
    "unlink_rows",
    "warm_up",
]
