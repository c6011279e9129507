"""Record acknowledgements in tasks: ids of records, and the roots that a source waits for.

Belongs here: the random ids, the outputs that stamp records with them, and the pending roots of a source.
Does not: the acker (``operators/acking``), and the tasks themselves.
"""
