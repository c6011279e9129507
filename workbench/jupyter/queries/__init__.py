"""Cells of ``%%stream_sql``.

Belongs here: the script of a cell over the notebook's variables, and its completion.
Does not: how its job is started and shown, which is as for ``%%stream``.
"""
