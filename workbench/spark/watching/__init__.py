"""Watching streaming queries that are written in plain PySpark, without changes to their code.

Belongs here: reading Spark's progress reports of a query, and displaying them.
Does not: running queries.
"""
