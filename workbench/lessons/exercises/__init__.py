"""Questions and exercises: what a learner is asked, and how the answer is judged.

Belongs here: kinds of questions and exercises, the runs and comparisons that judge an answer, and what is said then.
Does not: those of one lesson (topics).
"""
