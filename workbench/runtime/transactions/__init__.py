"""Transactions: tasks that write the effects of each record atomically, and restart alone.

Belongs here: the store, record ids, deliveries between tasks, and the tasks that use them.
Does not: the policy's value (``runtime/barriers``) and when tasks restart (``runtime/job``).
"""
