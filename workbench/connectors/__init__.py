"""Sources and sinks: the input and output of jobs.

Belongs here: one room for each kind of system that records are read from or written to.
Does not: how checkpoints are kept (``runtime/storage``).
"""
