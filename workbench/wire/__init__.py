"""What a kernel and a page say to each other about jobs: the only wire between the runtime and a picture.

Belongs here: sections of frames as dataclasses, messages, patches, and TypeScript's types, generated from them.
Does not: sampling a job (``telemetry``), and sending messages (``jupyter``).
"""
