"""The data between tasks, and the channels that carry it.

Belongs here: channels, buffers, outputs and their pools, input gates, splitters, chains and in-flight data.
Does not: tasks, and choosing the next one.
"""
