"""Connectors by name, with options as text: what ``CREATE TABLE ... WITH ('connector' = ...)`` needs.

Belongs here: the table of names, their options, and how options become the arguments of a source or a sink.
Does not: any connector, nor the syntax of SQL (``queries``).
"""
