"""Calling the user's functions.

Belongs here: turning records and columns into arguments and results into rows, and dead letters for what fails.
Does not: operators that call them.
"""
