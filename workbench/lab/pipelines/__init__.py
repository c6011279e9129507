"""Pipelines for simulations.

Belongs here: topologies, inputs, random pipelines, users' pipelines, and their expected rows.
Does not: running them.
"""
