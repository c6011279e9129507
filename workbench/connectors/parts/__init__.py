"""Sinks that commit files in two phases.

Belongs here: Parquet and other file sinks, their part files and names.
Does not: tables kept in the job (``tables``).
"""
