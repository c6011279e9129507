"""Micro-batches: the content of a batch, the queue of batches, and the source tasks that collect them.

Belongs here: the log of offsets, the queue of one job, and the source task.
Does not: the arguments of the architecture (``barriers/micro_batches.py``), and checkpoints (``checkpoints``).
"""
