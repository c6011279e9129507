"""Benchmarks of connectors, each with a server of its own.

Belongs here: works that read from a server or write to one, and the server's client alone, to compare with.
Does not: the connectors.
"""
