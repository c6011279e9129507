"""Starting jobs.

Belongs here: checks before the start, building the master and its driver, standing by.
Does not: the handle.
"""
