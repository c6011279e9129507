"""Deployment: the tasks and channels of an attempt, made from the physical graph.

Belongs here: how channels are created, and how tasks are built, opened and restored.
Does not: the tasks themselves (``tasks``), and when an attempt begins (``job``).
"""
