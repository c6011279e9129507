"""Pipelines and jobs.

Belongs here: pipelines, several jobs of one pipeline, jobs found on disk, and collecting a stream's first rows.
Does not: building streams.
"""
