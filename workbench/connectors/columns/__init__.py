"""Columns of databases, and how their values are read exactly.

Belongs here: which Arrow types stand for the types of a database's columns, and values that no Arrow type has.
Does not: connections, tables and transactions (``sql``).
"""
