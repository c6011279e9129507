"""Sources and sinks: where records come from and go to.

Belongs here: one room for each kind of place that records are read from or written to.
Does not: how checkpoints are kept (``runtime/storage``).
"""
