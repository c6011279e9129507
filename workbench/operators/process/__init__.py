"""Process functions: the user's code with state and timers.

Belongs here: keyed process functions, connected streams and broadcast state.
Does not: state itself (``state``).
"""
