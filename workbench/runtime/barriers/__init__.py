"""How a task handles checkpoint barriers: the fault-tolerance policies.

Belongs here: aligned, at-least-once and unaligned barriers, and the snapshots taken for them.
Does not: the coordinator, which triggers checkpoints.
"""
