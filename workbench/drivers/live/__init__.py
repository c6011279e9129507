"""The live driver: slot threads and the system's clock.

Belongs here: threads, wake-ups, precise timers and standby.
Does not: virtual time (``stepped``).
"""
