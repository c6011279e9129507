"""The fluent API of streams.

Belongs here: `Stream`, `KeyedStream`, `WindowedStream`, `ConnectedStreams`, and the functions that make their nodes.
Does not: running them.
"""
