"""What cells show besides dashboards: advice, the list of jobs, and outputs that are drawn again.

Belongs here: displayed text, and the choice between a docked dashboard and one in the cell.
Does not: dashboards themselves (``dashboard``).
"""
