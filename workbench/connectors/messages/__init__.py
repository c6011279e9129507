"""Messages of brokers and feeds as records: JSON, CSV, Avro, Arrow, text and bytes.

Belongs here: converting the value of a message to one or several records, and back.
Does not: receiving messages (``kafka``, ``feeds``), and files (``files``).
"""
