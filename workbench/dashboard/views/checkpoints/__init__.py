"""The view of checkpoints: overview, history, summary, configuration.

Belongs here: the tabs of Flink's checkpoint monitoring, and the timeline of one checkpoint.
Does not: barriers in the graph (``views``), and the frames of checkpoints (``telemetry``).
"""
