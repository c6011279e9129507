"""Operators: they process the records of a stream.

Belongs here: one module for each operator, in a room for each kind.
Does not: choosing the operators of a pipeline (``plan``), and calling them (``runtime``).
"""
