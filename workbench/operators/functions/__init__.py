"""Calling the user's functions.

Belongs here: converting records and columns to arguments, and results to rows, and dead letters for records that fail.
Does not: operators that call them.
"""
