"""Durable writes.

Belongs here: the disk with its syncs, what stands at a path, checksums, and values with delayed encoding.
Does not: formats, and the content of files.
"""
