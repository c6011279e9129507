"""Operators: they process the records of a stream.

Belongs here: one module for each operator, in a room for each kind.
Does not: which operators a pipeline has (``plan``), and when they are called (``runtime``).
"""
