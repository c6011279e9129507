"""A lesson of the course as a lecture: its steps, one at a time, in large type.

Belongs here: the steps of a lesson, the namespace in which they run, and the page that shows them.
Does not: lessons and their texts (``workbench.lessons``), or the scenes of a job (``workbench.dashboard.lecture``).
"""
