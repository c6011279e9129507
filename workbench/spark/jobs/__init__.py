"""Jobs on Spark: their start, their handle, and what they tell of themselves.

Belongs here: the handle of a pipeline's query, its batches and figures. Does not: translating pipelines, and looking at
queries of others.
"""
