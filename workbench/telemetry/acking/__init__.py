"""Record acknowledgements in frames.

Belongs here: the roots that sources wait for, and the tables of the ackers.
Does not: how they are drawn.
"""
