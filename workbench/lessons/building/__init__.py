"""From the one source of a lesson to its two notebooks: one with gaps, and one with the solutions.

Belongs here: reading a source, cutting the solutions out, and writing notebooks.
Does not: running them.
"""
