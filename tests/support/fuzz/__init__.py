"""Inputs that nobody has written with care: what the product reads from outside is what it wrote itself a moment
before, with something changed in it.

Whatever is read, the outcome is the right result or a `WorkbenchError`, soon and in little memory, and no file outside
of the given folders is touched. One input is told by its format and its seed::

    cd tests/support && python -m fuzz replay-log 17

says what was changed in it and what became of it. `formats/` has a file for each format, `mutations/` what is changed,
`worker.py` the process that tries inputs, and `runner.py` those that watch over such processes.
"""
