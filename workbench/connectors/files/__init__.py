"""File sources.

Belongs here: Parquet, CSV and JSON lines, malformed lines, and how large a record may be.
Does not: writing files (``parts``).
"""
