"""The course: lessons that ask for predictions and check what learners write.

Belongs here: the functions that a lesson's notebook calls, and the learner's progress.
Does not: the questions and exercises of one lesson (topics), and checking answers (exercises).
"""
