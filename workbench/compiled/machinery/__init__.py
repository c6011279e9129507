"""Compiling loops.

Belongs here: numba's entry point, memory that loops share, and loops over user functions.
Does not: particular loops.
"""
