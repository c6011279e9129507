"""Sources and sinks: the input and output of jobs.

Belongs here: one room for each kind of external system.
Does not: the storage of checkpoints (``runtime/storage``).
"""
