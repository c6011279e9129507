"""Event time against processing time: sampled records, windows and lateness.

Belongs here: what frames tell of event times, and how it is sampled.
Does not: watermarks of tasks and channels, which are metrics of theirs.
"""
