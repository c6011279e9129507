"""Kafka: topics as sources and sinks.

Belongs here: clients of a cluster, offsets in partitions, messages as rows, and exactly-once writing.
Does not: the formats of messages (``messages``).
"""
