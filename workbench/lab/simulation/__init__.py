"""Deterministic simulations.

Belongs here: scenarios, running, searching, shrinking and replaying them.
Does not: what is checked (``lab/invariants``).
"""
