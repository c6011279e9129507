"""Runs pipelines on Spark Structured Streaming.

Belongs here: the tier of each operator, the translation to Catalyst, the data sources, the stateful processor and the
sinks of a query, and its checkpoint directory. Does not: the handle of a job, and watching other queries.
"""
