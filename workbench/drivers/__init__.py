"""Drivers step the tasks: slot threads (live), a user (stepping), or a seeded random choice (simulation).

Belongs here: threads, sleeping, choosing the next step, injecting faults. Does not: the content of a step.
"""
