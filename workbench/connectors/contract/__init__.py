"""What sources and sinks keep to.

Belongs here: the protocols, and what many connectors share: rates, runs, plain types, blocks.
Does not: any connector.
"""
