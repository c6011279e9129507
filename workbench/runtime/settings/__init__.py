"""What can be set for a job.

Belongs here: the job's settings with their checks, and restart strategies.
Does not: anything that acts on them.
"""
