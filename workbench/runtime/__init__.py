"""The engine: passive tasks that a driver steps, the channels between them, checkpoints and recovery.

Belongs here: tasks, channels, buffer pools, input gates, alignment, the checkpoint coordinator, storage, the life cycle
of a job. Does not: threads, sleeping, reading a clock, deciding what to step next (the drivers' work), and any
presentation (telemetry's work).
"""
