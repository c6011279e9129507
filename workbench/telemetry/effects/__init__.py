"""What a change of a setting did to a running job.

Belongs here: measuring before and after a change, and saying it in a sentence.
Does not: how latency and throughput are sampled (``telemetry``).
"""
