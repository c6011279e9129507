"""A page of its own for the dashboards of jobs, beside or without a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.api.job.job import Job
from workbench.api.job.registry import jobs
from workbench.packages import needed


def serve(*chosen: Job, port: int = 0, hosts: Sequence[str] = ()) -> Any:
    """Serve dashboards as a stand-alone page on this machine, for a lecture without notebooks.

    This is the one thing in the workbench that opens a port: on loopback only, and only for who knows the token in the
    address, which the browser exchanges for a cookie. The pages act on the jobs as the dashboard in a notebook does.

    Args:
        chosen: the jobs to show; none: all jobs of this process, also those that start later.
        port: 0 for any that is free.
        hosts: further names under which a browser reaches the page, such as that of a proxy: ``"lab.example"``. It is
            refused under names that are neither these nor this machine's own, ``localhost`` and ``127.0.0.1``.

    Returns:
        The pages that are served: ``.url`` is what to open, ``.stop()`` closes the port.

    Raises:
        SettingError: the port cannot be opened, or a host is no name.

    Source: Flink's web dashboard (F2-1).

    Example:
        >>> pages = serve()
        >>> pages.url.startswith("http://localhost:"), "?token=" in pages.url
        (True, True)
        >>> pages.stop(); pages
        <ServedPages, stopped>
    """
    named = {job.name: job for job in chosen}
    return needed("workbench.dashboard.shown.serve", "a dashboard").ServedPages(
        (lambda: named) if named else jobs, port, hosts
    )
