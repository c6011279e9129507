"""Spark prepares histories (and, later, runs whole pipelines); the only part that knows PySpark.

PySpark is imported inside functions: importing this package, opening a history and replaying it needs no Java. What the
replay itself needs stands in ``connectors``.

Belongs here: whatever knows PySpark.
Does not: replaying what Spark wrote (``connectors/replay``).
"""
