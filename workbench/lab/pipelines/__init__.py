"""Pipelines for simulations.

Belongs here: topologies, inputs, drawn pipelines, users' own, and their expected rows.
Does not: running them.
"""
