"""How a task treats checkpoint barriers: the fault-tolerance policies.

Belongs here: aligned, at-least-once and unaligned barriers, and the snapshots that they lead to.
Does not: the coordinator, which triggers checkpoints.
"""
