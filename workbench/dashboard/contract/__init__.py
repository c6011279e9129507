"""What every part of the dashboard implements.

Belongs here: the `Part` protocol, the port to the job, actions and steps.
Does not: any view.
"""
