"""Kernels that step automata over the rows of keys.

Belongs here: stepping partial matches, and walking along the rows that they have bound.
Does not: what a pattern is (``patterns``), and buffers (``operators/matching``).
"""
