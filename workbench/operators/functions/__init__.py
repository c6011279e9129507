"""Calling the user's functions.

Belongs here: converting records and columns to arguments, and results to rows, and dead letters for what fails.
Does not: operators that call them.
"""
