"""The initial resources of a job.

Belongs here: opening its storage, checking the places of its sinks, recording its input, preparing kernels.
Does not: starting it (``launching``).
"""
