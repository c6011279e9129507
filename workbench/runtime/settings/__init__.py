"""The settings of a job.

Belongs here: settings with their checks, and restart strategies.
Does not: code that applies them.
"""
