"""Durable writes.

Belongs here: file operations with fsync, checks of what a path refers to, checksums, locks on folders, and values with
delayed encoding. Does not: file formats, and the content of files.
"""
