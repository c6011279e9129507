"""Takes, deletes and restores a job's savepoints."""

from __future__ import annotations

import threading

from workbench.api.beginning.opening import matched
from workbench.api.beginning.sink_places import check_restorable
from workbench.api.job.run import Run
from workbench.arguments import true_or_false
from workbench.connectors.contract.base import Source
from workbench.durations import Duration, parse_duration
from workbench.errors import JobError, unknown
from workbench.runtime.storage import check_name

DELETE_TIMEOUT_S = 60.0
"""Wait for what is being written before it."""


def savepoint_names(run: Run) -> list[str]:
    """The savepoints in the job's checkpoint directory, oldest first."""
    return [manifest.place.rpartition("/")[2] for manifest in run.master.storage.savepoints()]


def take_savepoint(run: Run, name: str, timeout: Duration) -> str:
    """Take a savepoint, wait for it, and return its folder; see `Job.savepoint`."""
    run.check_running()
    check_name(name, "savepoint")
    run.check_outside()
    seconds = parse_duration(timeout, "timeout") / 1e6
    requests, done, reasons = run.master.requests, threading.Event(), []

    def over(reason: str) -> None:
        reasons.append(reason)
        done.set()

    asked = threading.Event()

    def ask() -> None:
        if not done.is_set():
            asked.set()
            run.master.checkpoint("savepoint", name)

    def withdraw() -> None:
        if not asked.is_set():
            requests.await_no_more(name, over)

    try:
        alone = requests.await_savepoint(name, over)
        # Only now: from here on no other savepoint of that name can complete.
        if run.master.storage.savepoint(name) is not None:
            raise JobError(f"the savepoint {name!r} already exists: choose another name")
        if not alone:
            raise JobError(f"the savepoint {name!r} is already being taken: wait for it, or choose another name")
        run.apply(lambda master: ask())
    except BaseException:  # an interrupt can come anywhere: the savepoint was requested by then, or never
        run.master.call(withdraw)
        raise
    run.driver.wait_for(done, seconds)
    manifest = run.master.storage.savepoint(name)
    if manifest is not None:
        return run.master.storage.path_of(manifest.place)
    if run.over:
        raise JobError(f"the savepoint {name!r} was not taken: the job ended first ({run.state})")
    if reasons:
        raise JobError(f"the savepoint {name!r} was not taken: {reasons[0] or 'it was deleted at once'}")
    why = run.held_up() or ": see job.checkpoints()"
    raise JobError(f"the savepoint {name!r} was not complete within {timeout}{why}")


def delete_savepoint(run: Run, name: str) -> None:
    """Delete a savepoint of a running job; see `Job.delete_savepoint`."""
    if run.over:
        raise JobError(
            f"the job {run.name!r} has ended ({run.state}): wb.delete_savepoint(folder) deletes its savepoints"
        )
    run.check_running()
    names = savepoint_names(run)
    if name not in names:
        raise JobError(unknown("savepoint", name, names))
    done = threading.Event()
    problems: list[str] = []

    def discarded(result: Exception | None) -> None:
        if result is not None:
            problems.append(f"the savepoint {name!r} could not be deleted: {result}")
        done.set()

    place, master = f"savepoints/{name}", run.master

    def discard() -> None:
        manifest = master.storage.savepoint(name)
        master.storage.discard(place)
        for node in master.logical.nodes:
            if manifest is not None and isinstance(node.spec, Source) and node.spec.keeps_savepoints:
                node.spec.create().forget(manifest.checkpoint_id)

    def delete() -> None:
        start = master.restart_point
        if start is not None and start.place == place:
            problems.append(f"the job would restart from {name!r} after a failure: take a checkpoint first")
            done.set()
        else:
            run.driver.submit(discard, discarded)

    run.master.call(delete)
    if not run.driver.wait_for(done, DELETE_TIMEOUT_S):
        run.check_running()
        problems.append(f"the savepoint {name!r} is not deleted yet: a checkpoint may still be in progress")
    if problems:
        raise JobError(problems[0])


def check_restore(run: Run, savepoint: str, *, allow_non_restored_state: bool) -> None:
    """Reject a savepoint that the job's pipeline cannot be run from; all files of the savepoint are read.

    Raises:
        JobError: there is no such savepoint, or it is in memory only.
        WorkbenchError: as for `Job.restore`.
    """
    run.check_outside()
    allowed = true_or_false(allow_non_restored_state, "allow_non_restored_state")
    storage = run.master.storage
    manifest = storage.savepoint(savepoint)
    if manifest is None:
        raise JobError(f"there is no savepoint {savepoint!r} in this job's checkpoint directory")
    if not storage.path_of(manifest.place):
        raise JobError(
            f"the savepoint {savepoint!r} is in memory and is lost when the job ends: run the job with a checkpoint_dir"
        )
    taken, _ = matched(manifest, run.master.graph, allow_non_restored_state=allowed)
    check_restorable(storage, taken, run.master.logical)
