"""What people write: streams, pipelines and jobs.

Belongs here: the fluent objects that build the logical graph, the job's handle, and the list of this process's jobs.
Does not: how anything runs, and how it is shown.
"""

from workbench.api.job import Job
from workbench.api.keyed import KeyedStream
from workbench.api.pipeline import Pipeline
from workbench.api.registry import job, jobs
from workbench.api.stream import Stream
from workbench.api.windowed import WindowedStream

__all__ = ["Job", "KeyedStream", "Pipeline", "Stream", "WindowedStream", "job", "jobs"]
