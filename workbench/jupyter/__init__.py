"""The IPython shell of the workbench: ``%load_ext workbench``, the ``%stream`` and ``%%stream`` magics, the comms.

Belongs here: everything that knows IPython, ipykernel or comms. Does not: what a verb *does*; each calls its
Python twin on ``Job``, so whatever a magic can do, a program can do as well.
"""

from workbench.jupyter.extension import load_ipython_extension, serve_jobs, unload_ipython_extension

__all__ = ["load_ipython_extension", "serve_jobs", "unload_ipython_extension"]
