"""The lessons: a module each, with its questions, exercises, hidden inputs and oracles.

Belongs here: what is asked in one lesson, and the truth with which an answer is compared.
Does not: the text of a lesson (sources), or how answers are judged (exercises).
"""
