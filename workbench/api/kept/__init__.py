"""Stored data about jobs.

Belongs here: recordings, snapshots to inspect, job records and journals.
Does not: starting jobs from them.
"""
