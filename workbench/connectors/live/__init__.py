"""Sources and sinks without stored data.

Belongs here: generators, sockets, hybrid sources, callbacks and printing.
Does not: connectors to files.
"""
