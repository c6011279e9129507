"""The works that benchmarks run.

Belongs here: one module for each work, and the events that they read.
Does not: measuring.
"""
