"""A stand-alone page for the dashboards of jobs, with or without a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.api.job.job import Job
from workbench.api.job.registry import jobs
from workbench.arguments import as_given
from workbench.errors import JobError, SettingError
from workbench.packages import needed


def serve(*chosen: Job, port: int = 0, hosts: Sequence[str] = ()) -> Any:
    """Serve dashboards as a stand-alone page on this machine, for a lecture without notebooks.

    Nothing else in the workbench opens a port. It is open on loopback only, and only to anyone with the token in the
    URL, which the browser exchanges for a cookie. The pages control the jobs like the dashboard in a notebook.

    Args:
        chosen: the jobs to show; none: all jobs of this process, including those that start later.
        port: 0 for any free port.
        hosts: further names under which a browser reaches the page, such as that of a proxy: ``"lab.example"``. Other
            names are rejected, except this machine's own, ``localhost`` and ``127.0.0.1``.

    Returns:
        The served pages: ``.url`` is the URL to open, ``.stop()`` closes the port.

    Raises:
        SettingError: the port cannot be opened, a host is not a valid name, or a value is not a job.
        JobError: a chosen job runs on Spark.

    Source: Flink's web dashboard (F2-1).

    Example:
        >>> pages = serve()
        >>> pages.url.startswith("http://localhost:"), "?token=" in pages.url
        (True, True)
        >>> pages.stop(); pages
        <ServedPages, stopped>
    """
    for job in chosen:
        if not hasattr(job, "engine"):
            raise SettingError(f"serve got {as_given(job)}, which is not a job: pass jobs, such as wb.job('delays')")
        if job.engine == "spark":
            raise JobError(f"the job {job.name!r} runs on Spark and has no page of its own: see job.dashboard()")
    named = {job.name: job for job in chosen}
    return needed("workbench.dashboard.shown.serve", "a dashboard").ServedPages(
        (lambda: named) if named else _in_the_kernel, port, hosts
    )


def _in_the_kernel() -> dict[str, Job]:
    """The jobs that have a dashboard of the kernel's."""
    return {name: job for name, job in jobs().items() if job.engine == "kernel"}
