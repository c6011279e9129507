"""The common part of all drivers.

Belongs here: steps, turns, probes of a running job, slow work and heartbeats.
Does not: a particular driver.
"""
