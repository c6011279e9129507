"""Benchmarks of connectors, each with its own server.

Belongs here: works that read from or write to a server, and the bare client for comparison.
Does not: the connectors.
"""
