"""What Spark takes: pipelines on Spark beside PySpark by hand, and histories beside plain Parquet.

Belongs here: measurements that need Spark, by sessions of the workbench.
Does not: the engine itself (``workbench/spark``).
"""
