"""The modules that declare kernels, known without importing numba."""

MODULES = {
    "workbench.compiled.folding.accumulate": ("fold_floats", "fold_ints", "running_floats", "running_ints"),
    "workbench.compiled.folding.counting": ("count_into_waves", "number_rows"),
    "workbench.compiled.folding.division": ("divide_by",),
    "workbench.compiled.folding.merging": ("merge_cells",),
    "workbench.compiled.folding.rolling": ("roll_keys", "roll_slots"),
    "workbench.compiled.folding.sessions": ("place_in_sessions",),
    "workbench.compiled.folding.substring": ("find_literal",),
    "workbench.compiled.folding.windows": ("place_in_tumbling",),
    "workbench.compiled.keys.best_rows": ("pick_best",),
    "workbench.compiled.keys.hashing": ("hash_bytes", "hash_ints", "mix_hashes"),
    "workbench.compiled.keys.joining": ("find_ranges", "merge_rows", "order_by_code", "order_by_time"),
    "workbench.compiled.keys.key_table": ("add_keys", "find_keys", "rehash"),
    "workbench.compiled.keys.latest_rows": ("note_rows", "order_by_row"),
    "workbench.compiled.keys.linking": (
        "count_links",
        "distinct_codes",
        "follow_links",
        "link_rows",
        "take_equal",
        "unlink_rows",
    ),
    "workbench.compiled.keys.partition": ("route", "scatter"),
    "workbench.compiled.keys.selection": ("choose_rows",),
    "workbench.compiled.keys.spreading": ("spread",),
    "workbench.compiled.keys.value_counting": ("count_values", "mark_values"),
    "workbench.compiled.matching.chains": ("find_bound", "list_bound", "mark_bound"),
    "workbench.compiled.matching.stepping": ("step_matches",),
}
"""The kernels by the module that declares them, which imports numba."""
