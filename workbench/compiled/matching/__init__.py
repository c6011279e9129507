"""Kernels that step automata over the rows of keys.

Belongs here: stepping partial matches, and walking through their bound rows.
Does not: patterns themselves (``patterns``), and buffers (``operators/matching``).
"""
