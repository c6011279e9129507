"""The workbench's own operators in micro-batches: the carried tier, without Spark.

Belongs here: tasks that are restored, fed and saved for each batch, and how their elements become bytes.
Does not: PySpark, sources and sinks.
"""
