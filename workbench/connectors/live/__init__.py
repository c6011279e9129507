"""Sources and sinks of the moment.

Belongs here: generators, sockets, hybrid sources, callbacks and printing.
Does not: anything that keeps files.
"""
