"""Operators without state.

Belongs here: filtering, mapping, selecting columns, splitting and merging.
Does not: anything with a snapshot.
"""
