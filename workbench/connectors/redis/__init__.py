"""Redis: streams as sources and sinks, hashes as sinks and look-ups.

Belongs here: connections to a Redis server, positions in its streams, entries as records, and rows as keys.
Does not: other databases (``sql``).
"""
