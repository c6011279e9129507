"""The handle of a job: everything that a person sees of it or does to it goes through here.

What is seen comes from telemetry frames; what is done is posted to the job's master, which applies it between two
steps. Each concern has a class of its own, and `Job` is all of them.
"""

from workbench.api.job.job_controls import JobControls
from workbench.api.job.job_endings import JobEndings
from workbench.api.job.job_failures import JobFailures
from workbench.api.job.job_savepoints import JobSavepoints
from workbench.api.job.job_slowness import JobSlowness
from workbench.api.job.job_steps import JobSteps
from workbench.api.job.job_views import JobViews
from workbench.api.kept.journal import COMMANDS, remembered


class Job(JobControls, JobSavepoints, JobFailures, JobSlowness, JobSteps, JobViews, JobEndings):
    """A running or ended job; made by ``Pipeline.run``.

    Facts come from telemetry, a tenth of a second old at most; what is asked of it is posted to the job and applied
    between two steps.

    Source: F2-1; Flink's ``JobClient``.

    Attributes:
        recorder: the job's flight recorder, its telemetry frames, from which dashboard and report are drawn.

    Example:
        >>> clicks = pa.table({"user": ["a", "b"] * 500, "t": range(1000)})
        >>> counts = wb.Stream.from_table(clicks, event_time="t", rate=1000).key_by("user").aggregate(n=wb.count())
        >>> job = counts.sink_to(wb.TableSink("counts")).run("clicks", checkpoint_interval="50ms")
        >>> job.pause(); job.status()["paused"]  # it reads no further, and what is in flight goes on
        True
        >>> status = job.tune(buffer_timeout="5ms", rate=5000)
        >>> status = job.rescale(2)
        >>> job.checkpoint()  # now
        >>> job.fail("aggregate[1]")  # it goes on from the last complete checkpoint
        >>> job.resume()
        >>> job.wait("60s"), job.name, job.state, job.over
        ('FINISHED', 'clicks', 'FINISHED', True)
        >>> job.table("counts").num_rows  # each record once, in spite of all that
        1000
        >>> len(job.checkpoints()) > 0, len(job.metrics()), len(job.graph().vertices)
        (True, 4, 2)
        >>> len(job.audit())  # nothing was counted twice
        0
        >>> job = counts.sink_to(wb.TableSink("counts")).run("lesson", driver="stepping", buffer_size=1)
        >>> bool(job.next_record()), bool(job.next_buffer()), bool(job.next_watermark())  # each gives a picture
        (True, True, True)
        >>> job.checkpoint()
        >>> bool(job.next_barrier()), bool(job.until_aligned()), bool(job.until_checkpoint())
        (True, True, True)
        >>> job.cancel()
    """


for _name in COMMANDS:
    setattr(Job, _name, remembered(getattr(Job, _name)))
