"""Record acknowledgements in frames.

Belongs here: the pending roots of sources, and the tables of the ackers.
Does not: drawing them.
"""
