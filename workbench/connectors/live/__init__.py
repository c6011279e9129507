"""Sources and sinks that do not store data.

Belongs here: generators, sockets, hybrid sources, callbacks and printing.
Does not: connectors to files.
"""
