"""Fault injection.

Belongs here: crash points, the faults that can be injected, and a disk that fails.
Does not: checking the consequences (``lab``).
"""
