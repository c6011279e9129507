"""The pictures of lessons other than pictures of jobs: event time against processing time, and curves.

Belongs here: SVG for light and dark themes, with a text alternative.
Does not: their data.
"""
