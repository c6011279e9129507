"""Spark: writes histories, and runs pipelines where one machine is not enough; the only part that uses PySpark.

PySpark is imported when it is needed: opening a history and replaying it do not need Java.

Belongs here: writing histories with Spark, finding its Java, its sessions.
Does not: replaying what Spark wrote (``connectors/replay``).
"""
