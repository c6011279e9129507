"""Loops over keys.

Belongs here: hashing, key tables, partitioning, matching and selecting rows.
Does not: aggregates.
"""
