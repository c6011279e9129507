"""Deterministic simulations.

Belongs here: scenarios, running, searching, shrinking and replaying them.
Does not: the invariants (``lab/invariants``).
"""
