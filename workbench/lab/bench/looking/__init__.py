"""The cost of an open dashboard.

Belongs here: browsers, servers and pages for benchmarks.
Does not: other benchmarks.
"""
