"""Expressions as syntax trees.

Belongs here: building them from Python or SQL text, their names, scopes and types.
Does not: computing values.
"""
