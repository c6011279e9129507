"""The lessons: a module each, with its questions and exercises.

Belongs here: the questions and exercises of one lesson.
Does not: the text of a lesson (sources), and judging answers (checks).
"""
