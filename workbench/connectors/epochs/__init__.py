"""Sinks that write rows to a store outside of the job.

Belongs here: appending epochs exactly once, upserting, and the ownership of a place, over the store's few operations.
Does not: any store (``sql``, ``redis``), and files (``parts``).
"""
