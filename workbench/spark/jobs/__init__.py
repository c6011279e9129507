"""Jobs on Spark: their start, their handle, and their status.

Belongs here: the handle of a pipeline's query, its batches and figures. Does not: translating pipelines, and watching
    other queries.
"""
