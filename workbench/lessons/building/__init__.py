"""Builds two notebooks from the source of a lesson: one with gaps, and one with the solutions.

Belongs here: reading a source, removing the solutions, and writing notebooks.
Does not: running them.
"""
