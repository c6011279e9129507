"""Whole queries in SQL: a text becomes the stream that the same method chain would build.

The dialect is Spark's, with Flink's window table functions. A query is planned onto the methods of `Stream`: no
operator exists for SQL alone, so checkpoints, stepping and pictures are those of any pipeline.

Belongs here: statements, the names that they use, and which methods they become.
Does not: expressions on the columns of one row (``expressions``), and how anything runs.
"""

from workbench.queries.sql import sql, sql_script

__all__ = ["sql", "sql_script"]
