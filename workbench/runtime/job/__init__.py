"""The life of a job.

Belongs here: the master, attempts, failures, restarts and endings, and who observes them.
Does not: single checkpoints and tasks.
"""
