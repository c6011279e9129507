"""A lesson of the course as a lecture: its steps, one at a time, in large type.

Belongs here: which steps a lesson has, the namespace in which they run, and the stage on which a page shows them.
Does not: lessons and their texts (``workbench.lessons``), or the scenes of a job (``workbench.dashboard.lecture``).
"""
