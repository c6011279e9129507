"""Checkpoints as a whole.

Belongs here: the coordinator, its records and requests, rescaling, the audit, and background writing.
Does not: files (``storage``), and the part of one task (``barriers``).
"""
