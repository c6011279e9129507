"""Trees of records, tracked by the XOR of random ids (Storm's acking framework).

Belongs here: the acker, and the rotating buckets that time entries out.
Does not: what gives records their ids (``runtime/acking``).
"""
