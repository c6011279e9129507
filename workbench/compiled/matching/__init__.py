"""Kernels that step the automata of patterns over the rows of keys.

Belongs here: stepping partial matches, and walking along their bound rows.
Does not: patterns themselves (``patterns``), and the arrays that hold partial matches (``operators/matching``).
"""
