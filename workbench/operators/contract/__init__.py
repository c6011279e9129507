"""The contract of all operators.

Belongs here: the `Operator` protocol, and what all operators use to take batches apart and assemble results.
Does not: any operator.
"""
