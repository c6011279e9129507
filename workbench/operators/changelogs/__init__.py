"""Operators whose results later records update: they emit changelogs.

Belongs here: the kinds of changes, the state that retracts rows, and groups, top rows and joins without a window.
Does not: results that are final when they are emitted (``windows``, ``joins``).
"""
