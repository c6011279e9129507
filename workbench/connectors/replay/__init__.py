"""Recorded histories and their replay.

Belongs here: the replay log, its manifest, reading position and pace.
Does not: writing a history with Spark (``spark``).
"""
