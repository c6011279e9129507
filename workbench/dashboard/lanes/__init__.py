"""Several jobs of one pipeline side by side.

Belongs here: their common display, and the part that draws them on common axes.
Does not: starting the jobs.
"""
