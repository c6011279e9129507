"""Sinks that write rows to a store outside of the job.

Belongs here: appending epochs exactly once, upserting, and the ownership of a place, based on a few operations of a
store.
Does not: particular stores (``sql``, ``redis``), and files (``parts``).
"""
