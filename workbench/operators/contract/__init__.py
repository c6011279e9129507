"""What every operator keeps to.

Belongs here: the `Operator` protocol, and what all operators use to take batches apart and put results together.
Does not: any operator.
"""
