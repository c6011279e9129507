"""Several jobs of one pipeline beside each other.

Belongs here: what all of them together are to a display, and the part that draws them on common axes.
Does not: starting them.
"""
