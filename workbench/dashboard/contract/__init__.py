"""The contract of the dashboard's parts.

Belongs here: the `Part` protocol, the port to the job, actions and steps.
Does not: any view.
"""
