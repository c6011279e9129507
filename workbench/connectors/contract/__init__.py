"""The contract of sources and sinks.

Belongs here: the protocols, and code that several connectors share: rates, retries, runs, plain types, blocks.
Does not: any connector.
"""
