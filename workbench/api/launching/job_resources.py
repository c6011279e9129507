"""The resources of a running job besides its tasks: acquired when it starts, released when it has ended."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from workbench.api.beginning.opening import Beginning, keep_held
from workbench.api.kept.job_record import RECORD, JobRecord, known_directories
from workbench.drivers.contract.driver import Driver
from workbench.drivers.contract.executor import SteppedExecutor, ThreadedExecutor
from workbench.drivers.contract.heartbeat import Heartbeat
from workbench.drivers.live.standby import Standby
from workbench.printable import printable
from workbench.runtime.job.observer import JobObserver
from workbench.runtime.storage import DirectoryStorage, Holder
from workbench.runtime.tasks.execution import Parts


class JobResources(JobObserver):
    """The checkpoint directory and the sinks' folders of one job with the heartbeat that renews them, its executor, and
    the record by which it is found.

    Args:
        begin: its initial resources.
        driver: of the job.
        executor: runs users' functions next to its tasks.
        record: of the job.

    Attributes:
        standby: waits for the checkpoint directory of another process; None: it does not wait.
    """

    def __init__(
        self, begin: Beginning, driver: Driver, executor: ThreadedExecutor | SteppedExecutor, record: JobRecord
    ) -> None:
        self._begin = begin
        self._driver = driver
        self._executor = executor
        self._record = record
        self._heartbeat: Heartbeat | None = None
        self.standby: Standby[Beginning] | None = None

    @property
    def directory(self) -> DirectoryStorage | None:
        """The checkpoint directory, if there is one."""
        storage = self._begin.storage
        return storage if isinstance(storage, DirectoryStorage) else None

    def holder(self) -> Holder | None:
        """The owner of the checkpoint directory, if there is one and it is known."""
        if (directory := self.directory) is not None:
            return directory.holder
        return None if self.standby is None else self.standby.holder

    def take(self, begin: Beginning) -> None:
        """Own these resources from now on, and keep them for the job."""
        self._begin = begin
        if (directory := self.directory) is not None:
            self._keep("RUNNING")
            if (known := known_directories()) is not None:
                known.add(str(directory.directory or directory.location))
        if begin.held:
            self._heartbeat = keep_held(begin, self._driver)

    def stop_heartbeat(self) -> None:
        """Stop renewing ownership."""
        if self._heartbeat is not None:
            self._heartbeat.stop()

    def on_end(self, time_us: int) -> None:
        """Release everything after the last pending write."""
        self._executor.close()
        self.stop_heartbeat()
        if self.standby is not None:
            self.standby.stop()
        parts = self._driver.master.services.parts
        if self._begin.held or parts is not None:
            self._driver.submit(partial(self._leave, parts), lambda result: None)

    def _keep(self, state: str) -> None:
        """Write the job's record, for processes that find its directory."""
        if (directory := self.directory) is not None:
            self._record = replace(self._record, state=state, directory=printable(directory.shown))
            directory.keep(RECORD, self._record.to_json())

    def _leave(self, parts: Parts | None) -> None:
        try:
            if parts is not None:
                parts.end()
            self._keep(self._driver.master.state)
        finally:
            self._begin.close()
