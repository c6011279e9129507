"""What each clause of a query becomes: groups, joins, conditions on other rows, numbers of rows, patterns.

Belongs here: one clause, or one kind of it, per module.
Does not: the order in which the clauses of a SELECT are planned (``selecting``).
"""
