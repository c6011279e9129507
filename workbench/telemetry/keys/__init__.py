"""Which keys make up the load of a task.

Belongs here: looking at the keys of buffers that a task receives, when it receives more than its share.
Does not: finding such a task (``telemetry.diagnosis``).
"""
