"""Questions and exercises, and how answers are judged.

Belongs here: kinds of questions and exercises, the runs and comparisons that judge an answer, and the feedback.
Does not: the questions and exercises of one lesson (topics).
"""
