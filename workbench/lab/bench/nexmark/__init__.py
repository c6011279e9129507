"""The benchmark Nexmark: its events, its queries, and the rows that they must give.

Belongs here: what comes of its public definition, and how a query is measured and compared.
Does not: other benchmarks (``works``).
"""
