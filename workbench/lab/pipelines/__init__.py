"""Pipelines for simulations.

Belongs here: topologies, inputs, drawn pipelines, users' own, and what they must have committed.
Does not: running them.
"""
