"""Benchmarks on Spark: pipelines compared with hand-written PySpark, and histories compared with plain Parquet.

Belongs here: measurements that need Spark.
Does not: the engine itself (``workbench/spark``).
"""
