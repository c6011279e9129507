"""The IPython shell of the workbench: ``%load_ext workbench``, the ``%stream`` and ``%%stream`` magics, the comms.

Belongs here: all code that uses IPython, ipykernel or comms. Does not: the actions of verbs; each verb calls a method
    of ``Job``, so a program can do everything that a magic can do.
"""

from workbench.jupyter.extension import load_ipython_extension, serve_jobs, unload_ipython_extension

__all__ = ["load_ipython_extension", "serve_jobs", "unload_ipython_extension"]
