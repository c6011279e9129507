"""The effect of a changed setting on a running job.

Belongs here: measuring before and after a change, and the sentence about the difference.
Does not: sampling latency and throughput (``telemetry``).
"""
