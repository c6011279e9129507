"""The initial resources of a job.

Belongs here: opening its storage, checking the places of its sinks, the sink of a recording, preparing kernels.
Does not: starting it (``launching``).
"""
