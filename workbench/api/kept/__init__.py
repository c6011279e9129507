"""What is kept of jobs.

Belongs here: recordings, snapshots to look into, job records and journals.
Does not: starting anything from them.
"""
