"""What ``workbench`` exports: the most common names directly, and the rest in groups.

Belongs here: which names are exported, and the groups that are not modules elsewhere.
Does not: definitions.
"""
