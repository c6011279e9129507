"""Patterns as a part of the dashboard.

Belongs here: the partial matches of an operator, by key.
Does not: what a partial match is (``operators/matching``).
"""
