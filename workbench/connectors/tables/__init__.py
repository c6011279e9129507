"""Tables: a job's committed rows, and tables as sources.

Belongs here: `TableSink`, its files, and the latest row of each key.
Does not: databases (``sql``).
"""
