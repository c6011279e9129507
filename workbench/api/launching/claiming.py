"""Acquires the initial resources of a job, and releases them if it does not start."""

from __future__ import annotations

from workbench.api.beginning.opening import Beginning, matched, open_storage, regrouped
from workbench.api.beginning.sink_places import check_fresh, hold_places
from workbench.api.launching.parts import leave_others
from workbench.api.launching.refusals import Plan, RunRequest
from workbench.runtime.storage import DirectoryStorage
from workbench.runtime.storage.directory import INCREMENTAL_ABOVE_BYTES


def claimed(request: RunRequest, plan: Plan, run: str) -> Beginning:
    """Acquire the initial resources of a job, so that no other job can have them; `run` identifies the run.

    Raises:
        HeldError: another process owns the checkpoint directory.
        WorkbenchError: it cannot start there; see `Pipeline.run`.
    """
    above_bytes = INCREMENTAL_ABOVE_BYTES if request.incremental else None
    storage, manifest, first_id = open_storage(request.checkpoint_dir, request.resumes, request.restore, above_bytes)
    begin = Beginning(storage, None, first_id, plan.graph)
    try:
        graph = plan.graph
        news: tuple[str, ...] = ()
        if manifest is not None:
            what = f"{manifest.place} of job {manifest.job!r}"
            graph = regrouped(graph, plan.settings.max_parallelism, manifest.max_parallelism, what)
            allowed = request.allow_non_restored_state
            manifest, news = matched(manifest, graph, allow_non_restored_state=allowed)
            leave_others(plan.settings.policy, storage, resumes=request.restore is None)
        places = hold_places(plan.logical, request.name, run, storage)
        begin = Beginning(storage, manifest, first_id, graph, news, places)
        if manifest is None:
            check_fresh(plan.logical, request.name)
    except BaseException:
        let_go(begin)
        raise
    return begin


def let_go(begin: Beginning) -> None:
    """Release the resources of a job that does not start."""
    try:
        if isinstance(begin.storage, DirectoryStorage):
            begin.storage.undo_take_back()
    finally:
        begin.close()
