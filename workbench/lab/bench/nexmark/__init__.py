"""The Nexmark benchmark: its events, its queries, and their expected rows.

Belongs here: the public definition of the benchmark, and measuring and comparing a query.
Does not: other benchmarks (``works``).
"""
