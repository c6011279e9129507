"""Dead letters as a source: the records that failed, decoded again.

Belongs here: reading dead letters back.
Does not: what a dead letter is, and how it is made (``operators/functions/dead_letters.py``).
"""
