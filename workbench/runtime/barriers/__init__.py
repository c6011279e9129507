"""How a task handles checkpoint barriers: the fault-tolerance policies.

Belongs here: the checkpoint modes and the other fault-tolerance architectures as values, and the snapshots that tasks
take. Does not: the coordinator, which triggers checkpoints, and the tasks of an architecture (``acking``, ``batches``,
``transactions``).
"""
