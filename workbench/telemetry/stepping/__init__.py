"""What each architecture of fault tolerance does in a step, in words and beside the tasks.

Belongs here: a narrator for each architecture, and the choice between them.
Does not: the step itself (``drivers/contract/step``) and the picture (``api/pictures``).
"""
