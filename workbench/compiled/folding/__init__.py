"""Loops that fold values.

Belongs here: accumulators, rolling and windowed aggregates, sessions.
Does not: keys.
"""
