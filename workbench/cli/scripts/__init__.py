"""The commands that run a user's script in this process: run and serve.

Belongs here: running a script as the main program, and what the command does with its jobs.
Does not: the end of a script that Python runs itself (``api/job/script_end.py``).
"""
