"""Lecture mode: one scene at a time, in type that the last row can read.

Belongs here: the table of scenes, their captions, and the data that a page gets about them.
Does not: the views that a scene shows.
"""
