"""Tasks, which a driver steps.

Belongs here: source and operator tasks, how they are deployed and restored.
Does not: stepping them.
"""
