"""The parts of a query: its text and statements, the names that it reads, expressions on them, and windows in FROM.

Belongs here: code that several clauses need.
Does not: the translation of one clause (``clauses``).
"""
