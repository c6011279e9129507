"""The contract of sources and sinks.

Belongs here: the protocols, and what several connectors share: rates, runs, plain types, blocks.
Does not: any connector.
"""
