"""Operators that remember nothing from one batch to the next.

Belongs here: filtering, mapping, choosing columns, splitting and uniting.
Does not: anything with a snapshot.
"""
