"""Measuring and reporting.

Belongs here: trials, suites, reports, other systems and sweeps.
Does not: the works.
"""
