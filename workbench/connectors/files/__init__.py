"""Reading files as streams.

Belongs here: Parquet, CSV and JSON lines, and lines that are no records.
Does not: writing files (``parts``).
"""
