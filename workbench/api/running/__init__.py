"""Pipelines and jobs.

Belongs here: pipelines, several jobs of one pipeline, jobs found on disk, and `collect`.
Does not: building streams.
"""
