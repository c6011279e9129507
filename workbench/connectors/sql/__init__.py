"""Sinks to databases.

Belongs here: appending exactly once and upserting, for SQLite and DuckDB.
Does not: tables kept in the job (``tables``).
"""
