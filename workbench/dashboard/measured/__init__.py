"""Pictures of measurements.

Belongs here: charts of parameter sweeps and of chaos benchmarks.
Does not: views of a job.
"""
