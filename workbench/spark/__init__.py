"""Spark: writes histories, and runs pipelines that need more than one machine; the only part that uses PySpark.

PySpark is imported when it is needed: opening a history and replaying it do not need Java.

Belongs here: writing histories with Spark, finding its Java, its sessions.
Does not: replaying histories (``connectors/replay``).
"""
