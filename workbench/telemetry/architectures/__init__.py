"""Frames of what an architecture of fault tolerance keeps: transactions, and changelogs.

Belongs here: their frames. Does not: those of roots (``acking``) and of batches (``batches``).
"""
