"""Databases: tables as sources, sinks and look-ups.

Belongs here: tables, transactions and types of PostgreSQL, SQLite and DuckDB.
Does not: tables kept in the job (``tables``).
"""
