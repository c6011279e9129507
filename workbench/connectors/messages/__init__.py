"""Messages of brokers and feeds as records: JSON, CSV, Avro, Arrow, text and bytes.

Belongs here: how the value of one message becomes a record, or several, and back.
Does not: where messages come from (``kafka``, ``feeds``), and files (``files``).
"""
