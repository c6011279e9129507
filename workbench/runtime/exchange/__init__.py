"""What travels between tasks, and through what.

Belongs here: channels, buffers, outputs and their pools, input gates, splitters, chains and in-flight data.
Does not: tasks, and which of them runs next.
"""
