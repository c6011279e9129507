"""The keys that cause the load of a task.

Belongs here: sampling the keys in the buffers of a task that receives more than its share.
Does not: finding such a task (``telemetry.diagnosis``).
"""
