"""Acquires the initial resources of a job, and releases them if it does not start."""

from __future__ import annotations

import sys
from dataclasses import replace

from workbench.api.beginning.opening import Beginning, matched, open_storage, regrouped
from workbench.api.beginning.sink_places import check_fresh, hold_places
from workbench.api.beginning.starting_over import told_aside
from workbench.api.kept.job_record import RECORD
from workbench.api.launching.parts import leave_others
from workbench.api.launching.refusals import Plan, RunRequest
from workbench.runtime.storage import CheckpointStorage, DirectoryStorage
from workbench.runtime.storage.directory import INCREMENTAL_ABOVE_BYTES
from workbench.runtime.transactions.continued import leave


def claimed(request: RunRequest, plan: Plan, run: str) -> Beginning:
    """Acquire the initial resources of a job, so that no other job can have them; `run` identifies the run.

    Raises:
        HeldError: another process owns the checkpoint directory.
        WorkbenchError: it cannot start there; see `Pipeline.run`.
    """
    above_bytes = INCREMENTAL_ABOVE_BYTES if request.incremental else None
    storage, manifest, first_id = open_storage(
        request.checkpoint_dir,
        request.resumes,
        request.restore,
        above_bytes,
        job=request.name,
        replace=request.replace,
    )
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
            begin = replace(begin, news=_set_aside(storage, request.name))
    except BaseException:
        let_go(begin)
        raise
    return begin


def _set_aside(storage: CheckpointStorage, job: str) -> tuple[str, ...]:
    """Set the checkpoints of an earlier run of the job aside, if there are any, and tell the user."""
    if not isinstance(storage, DirectoryStorage) or storage.latest() is None:
        return ()
    leave(storage)
    sentence = told_aside(job, storage.set_aside(RECORD))
    sys.stderr.write(f"workbench: {sentence}\n")
    return (sentence,)


def let_go(begin: Beginning) -> None:
    """Release the resources of a job that does not start."""
    try:
        if isinstance(begin.storage, DirectoryStorage):
            begin.storage.undo_take_back()
    finally:
        begin.close()
