"""Drivers with virtual time.

Belongs here: stepping by hand, and the seeded simulation.
Does not: threads.
"""
