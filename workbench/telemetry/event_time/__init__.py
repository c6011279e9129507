"""Event time against processing time: sampled records, windows and lateness.

Belongs here: event times in frames, and sampling them.
Does not: watermarks of tasks and channels, which are metrics.
"""
