"""Durable writes.

Belongs here: the disk with its syncs, the kind of file at a path, checksums, and values with delayed encoding.
Does not: formats, and the content of files.
"""
