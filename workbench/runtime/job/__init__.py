"""The life of a job.

Belongs here: the master, attempts, failures, restarts and endings.
Does not: single checkpoints and tasks.
"""
