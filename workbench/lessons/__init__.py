"""The course: lessons that ask before they show, and check what learners write.

Belongs here: what a lesson's notebook calls, and the progress that it keeps.
Does not: the questions and exercises of one lesson (topics), or how an exercise is judged (exercises).
"""
