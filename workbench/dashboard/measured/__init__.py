"""Charts of measurements.

Belongs here: the charts of benchmarks.
Does not: views of a job.
"""
