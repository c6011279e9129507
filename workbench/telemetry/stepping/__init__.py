"""Descriptions of the steps of each fault-tolerance architecture, in words and next to the tasks.

Belongs here: a narrator for each architecture, and the choice of the narrator.
Does not: the step itself (``drivers/contract/step``) and the picture (``api/pictures``).
"""
