"""The pictures that lessons draw besides those of jobs: event time against processing time, and curves.

Belongs here: SVG that reads well in light and dark, with a text for those who do not see it.
Does not: the data in them.
"""
