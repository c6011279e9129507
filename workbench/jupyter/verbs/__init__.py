"""The verbs of ``%stream``.

Belongs here: the table of verbs, their words and their help, and running one.
Does not: magics and completion (``jupyter``), and the actions themselves, which are methods of ``Job``.
"""
