"""Writing so that nothing is lost.

Belongs here: the disk with its syncs, checksums, and values that are encoded later.
Does not: formats, and what is written.
"""
