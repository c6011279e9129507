"""What ``workbench`` exports: the most common names directly, and the rest in groups.

Belongs here: the list of exported names, and groups that are not modules elsewhere.
Does not: definitions.
"""
