"""Live feeds: server-sent events, WebSockets and MQTT as sources.

Belongs here: non-blocking connections, their protocols, and one reader for all of them.
Does not: brokers whose partitions are splits (``kafka``), and lines of a TCP server (``live``).
"""
