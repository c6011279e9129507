"""Micro-batches in frames.

Belongs here: the queue of batches, as of one moment.
Does not: the queue itself (``runtime/batches``), and its view (``dashboard/views/batches``).
"""
