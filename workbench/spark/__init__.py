"""Spark prepares histories; the only part that uses PySpark.

PySpark is imported inside functions: importing this package, opening a history and replaying it do not need Java.

Belongs here: everything that uses PySpark.
Does not: replaying what Spark wrote (``connectors/replay``).
"""
