"""The handle of a job.

Belongs here: everything that users see of a job and do to it, and the list of this process's jobs.
Does not: how a job is started.
"""
