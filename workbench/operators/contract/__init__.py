"""The contract of all operators.

Belongs here: the `Operator` protocol, and the functions with which all operators split batches and assemble results.
Does not: any operator.
"""
