"""File sources.

Belongs here: Parquet, CSV and JSON lines, and lines that are not records.
Does not: writing files (``parts``).
"""
