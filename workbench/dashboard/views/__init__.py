"""The views of the dashboard.

Belongs here: one module or pair of modules for each view.
Does not: sending them to a page.
"""
