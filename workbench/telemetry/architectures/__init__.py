"""Frames of the fault-tolerance architectures with transactions and with a changelog.

Belongs here: these frames. Does not: frames of roots (``acking``) and of batches (``batches``).
"""
