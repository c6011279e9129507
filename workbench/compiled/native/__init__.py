"""Kernels compiled ahead of time: an extension module for any Python from 3.11 and any version of numba.

Belongs here: building the module from the kernels' sources, and finding it. Without it, numba compiles the kernels
(see ``workbench.compiled.machinery``), with the same results. Does not: particular kernels.
"""
