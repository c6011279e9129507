"""Micro-batches in frames.

Belongs here: the queue of batches at one moment.
Does not: the queue itself (``runtime/batches``), and its view (``dashboard/views/batches``).
"""
