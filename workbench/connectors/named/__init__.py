"""Connectors by name, with options as text, for ``CREATE TABLE ... WITH ('connector' = ...)``.

Belongs here: the table of names, their options, and the conversion of options to arguments of a source or a sink.
Does not: connectors themselves, and the syntax of SQL (``queries``).
"""
