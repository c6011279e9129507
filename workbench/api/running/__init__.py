"""Pipelines and jobs.

Belongs here: pipelines, jobs found on disk, and collecting a stream's first rows.
Does not: building streams.
"""
