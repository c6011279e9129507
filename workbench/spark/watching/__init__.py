"""Streaming queries that somebody wrote in PySpark, watched without a change to their code.

Belongs here: reading what Spark reports of a query, and the picture of it.
Does not: running queries.
"""
