"""Redis streams as a source.

Belongs here: connections to a Redis server, positions in its streams, and entries as records.
Does not: other databases (``sql``).
"""
