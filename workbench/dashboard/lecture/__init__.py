"""Lecture mode: one scene at a time in large type, for those in the last row.

Belongs here: the table of scenes, their captions, and what a page is told about them.
Does not: the views that a scene shows.
"""
