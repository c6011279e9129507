"""The messages between the master, tasks and drivers.

Belongs here: commands, reports and queries as data.
Does not: senders and receivers.
"""
