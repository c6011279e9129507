"""NATS JetStream: streams as sources and sinks.

Belongs here: the protocol of NATS without sockets, requests to JetStream, and positions in streams.
Does not: connections over TCP (``feeds``), and the formats of messages (``messages``).
"""
