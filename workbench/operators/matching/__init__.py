"""The operator that finds patterns of rows.

Rows wait until the watermark has passed them. Then their order is final: they are matched by event time and, for equal
times, by arrival. A *partial match* is a match that has begun; it binds rows to the pattern's variables.

Belongs here: waiting rows and kept rows, partial matches, the values of terms, and the operator's snapshot.
Does not: patterns themselves (``patterns``), and the loops (``compiled/matching``).
"""
