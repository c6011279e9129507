"""The operator that finds patterns of rows.

Rows wait until the watermark has passed them. Then they are final, and are matched in order of their event time, and of
their arrival if that is equal.

Belongs here: waiting and kept rows, partial matches, the values of terms, and the operator's snapshot.
Does not: patterns themselves (``patterns``), and the loops (``compiled/matching``).
"""
