"""Frames of fault-tolerance architectures: transactions, and changelogs.

Belongs here: their frames. Does not: those of roots (``acking``) and of batches (``batches``).
"""
