"""What runs: passive tasks that a driver steps, the channels between them, checkpoints and recovery.

Belongs here: tasks, channels, buffer pools, input gates, alignment, the checkpoint coordinator, storage, the life
cycle of a job. Does not: threads, sleeping, reading a clock, choosing what to step next (drivers do), and anything
about how it is shown (telemetry does).
"""
