"""The lessons: a module each, with its questions, exercises, hidden inputs and oracles.

Belongs here: the questions of one lesson, and the expected results for its exercises.
Does not: the text of a lesson (sources), and checking answers (exercises).
"""
