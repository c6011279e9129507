"""What Spark's Python workers receive of a pipeline: its plan with the functions of users, and secrets by reference.

Belongs here: how the plan is written, sent, checked and read, and which variables of the environment go with it.
Does not: what workers do with the plan.
"""
