"""Cells of ``%%stream_sql``.

Belongs here: the script of a cell over the notebook's variables, and its completion.
Does not: starting and showing its job, which works as for ``%%stream``.
"""
