"""Aggregate functions and the operators that fold records.

Belongs here: accumulators, rolling aggregates, `reduce`, and aggregation before an exchange.
Does not: windows.
"""
