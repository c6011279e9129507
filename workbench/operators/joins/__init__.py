"""Operators that combine two inputs by key.

Belongs here: joins in windows, sessions and intervals, with tables, and asynchronous look-ups.
Does not: `connect`, which calls a user's function.
"""
