"""Expressions computed on Arrow columns, as Spark computes them.

Belongs here: compiling a tree to kernels, and each family of functions.
Does not: syntax.
"""
