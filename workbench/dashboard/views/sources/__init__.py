"""The view of sources that read from servers.

Belongs here: their positions in splits, and lost connections.
Does not: their watermarks (``event_time``).
"""
