"""The parts of the dashboard.

Belongs here: one module or pair of modules for each view.
Does not: how a page gets them.
"""
