"""The public API: streams, pipelines and jobs.

Belongs here: the fluent objects that build the logical graph, the job's handle, and the list of this process's jobs.
Does not: running and displaying jobs.
"""
