"""The views of transactions and of changelogs.

Belongs here: their parts. Does not: the views of roots and of batches (``views``, ``views/batches``).
"""
