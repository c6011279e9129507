"""What the master, tasks and drivers say to each other.

Belongs here: commands, reports and queries as data.
Does not: senders and receivers.
"""
