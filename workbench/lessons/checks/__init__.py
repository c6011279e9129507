"""The judges of the exercises: a module each, with fixed and drawn inputs, oracles, and sentences about mistakes.

Belongs here: what is right for one exercise, and what is special about it.
Does not: running and comparing answers (exercises), and the questions of a lesson (topics).
"""
