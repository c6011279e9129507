"""Kafka: topics as sources and sinks.

Belongs here: clients of a cluster, offsets in partitions, messages as rows, and what makes a sink exactly once.
Does not: the formats of messages (``messages``).
"""
