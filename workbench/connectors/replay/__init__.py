"""Histories replayed as they arrived.

Belongs here: the replay log, its manifest, reading position and pace.
Does not: writing a history with Spark (``spark``).
"""
