"""The changes of a PostgreSQL table, read from the server's log (logical decoding).

Belongs here: replication connections, slots, the messages of pgoutput, and the copy of the table before them.
Does not: rows of a table by queries (``sql``), the state that completes changes (``operators/changelogs``).
"""
