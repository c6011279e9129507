"""Trees of records, tracked by the XOR of random ids (Storm's acking framework).

Belongs here: the acker, and the rotating buckets that time entries out.
Does not: assigning ids to records (``runtime/acking``).
"""
