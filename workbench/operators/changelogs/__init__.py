"""Operators whose results change with later records: they emit changelogs.

Belongs here: the kinds of changes, the state that takes rows back, and groups, top rows and joins without a window.
Does not: results that are final when they are emitted (``windows``, ``joins``).
"""
