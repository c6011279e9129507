"""What a kernel and a page say to each other about jobs: the only wire between the runtime and a picture.

Belongs here: sections of frames as dataclasses, from which the types of the page are generated; messages; patches.
Does not: sampling a job (``telemetry``), and sending messages (``jupyter``).
"""
