"""The translation of clauses: groups, joins, conditions on other rows, row numbers, patterns.

Belongs here: one clause, or one variant of a clause, per module.
Does not: the order in which the clauses of a SELECT are planned (``selecting``).
"""
