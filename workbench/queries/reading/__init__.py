"""What a query says: its text and statements, the names that it reads, expressions on them, and windows in FROM.

Belongs here: what several clauses need.
Does not: what one clause becomes (``clauses``).
"""
