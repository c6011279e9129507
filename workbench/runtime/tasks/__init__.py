"""Tasks, which a driver steps.

Belongs here: source and operator tasks, and what they resume from.
Does not: building them (``deployment``), and stepping them.
"""
