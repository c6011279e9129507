"""Queries in SQL: a text becomes the stream that the same method chain would build.

The dialect is Spark's, with Flink's window table functions. A query is translated to the methods of `Stream`. No
operator exists for SQL alone, so checkpoints, stepping and pictures work as for any pipeline.

Belongs here: statements, the names that they use, and their translation to methods.
Does not: expressions on the columns of one row (``expressions``), and running queries.
"""

from workbench.queries.sql import sql, sql_script

__all__ = ["sql", "sql_script"]
