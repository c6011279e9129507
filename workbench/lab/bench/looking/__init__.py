"""What an open dashboard costs.

Belongs here: browsers, servers and pages for benchmarks.
Does not: other works.
"""
