"""The sources of a job that are connected to servers.

Belongs here: their places in splits, and lost connections.
Does not: their watermarks (``event_time``).
"""
