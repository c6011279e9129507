"""Faults on purpose.

Belongs here: crash points, the faults that can be injected, and a disk that fails.
Does not: checking what they break (``lab``).
"""
