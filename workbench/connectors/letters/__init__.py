"""Dead letters as a source: the records that failed, decoded again.

Belongs here: what is needed to read dead letters back. What a dead letter is: ``operators/functions/dead_letters.py``.
"""
