"""Checkpoints: overview, history, summary, configuration.

Belongs here: the views of checkpoints.
Does not: other views.
"""
