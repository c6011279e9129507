"""Building blocks of charts.

Belongs here: HTML, colours, wording, charts over time and their data.
Does not: any view of a job.
"""
