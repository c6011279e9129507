"""Sinks to databases.

Belongs here: tables, transactions and types of PostgreSQL, SQLite and DuckDB.
Does not: tables kept in the job (``tables``).
"""
