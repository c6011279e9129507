"""File sources.

Belongs here: Parquet, CSV and JSON lines, and malformed lines.
Does not: writing files (``parts``).
"""
