"""The view of pattern matches.

Belongs here: the partial matches of an operator, by key.
Does not: partial matches themselves (``operators/matching``).
"""
