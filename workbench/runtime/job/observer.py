"""The observer of a job's events."""

from __future__ import annotations


class JobObserver:
    """Called by a job's master, on the master's turn; every hook does nothing by default and must return quickly."""

    def on_event(self, time_us: int, kind: str, text: str) -> None:
        """An entry of the job's log: `kind` is state, failure, recovery, tune, checkpoint or notice."""

    def on_checkpoint(self, time_us: int, checkpoint_id: int) -> None:
        """A checkpoint is complete."""

    def on_checkpoint_failed(self, time_us: int, text: str) -> None:
        """A checkpoint has failed, and not because its attempt or the job was ended."""

    def on_savepoint(self, name: str, path: str) -> None:
        """A savepoint is complete; `path` is empty in memory."""

    def on_mishap(self, text: str, trace: str) -> None:
        """Something has failed that does not end the job; `trace`: the user's lines that the error has passed."""

    def on_deployed(self, time_us: int) -> None:
        """Called when tasks run: all tasks of an attempt, or those of a restarted region."""

    def on_end(self, time_us: int) -> None:
        """The job has ended permanently."""


class Observers(JobObserver):
    """Several observers, called one after the other."""

    def __init__(self, *observers: JobObserver) -> None:
        self._observers = observers

    def on_event(self, time_us: int, kind: str, text: str) -> None:
        """Tell each."""
        for observer in self._observers:
            observer.on_event(time_us, kind, text)

    def on_checkpoint(self, time_us: int, checkpoint_id: int) -> None:
        """Tell each."""
        for observer in self._observers:
            observer.on_checkpoint(time_us, checkpoint_id)

    def on_checkpoint_failed(self, time_us: int, text: str) -> None:
        """Tell each."""
        for observer in self._observers:
            observer.on_checkpoint_failed(time_us, text)

    def on_savepoint(self, name: str, path: str) -> None:
        """Tell each."""
        for observer in self._observers:
            observer.on_savepoint(name, path)

    def on_mishap(self, text: str, trace: str) -> None:
        """Tell each."""
        for observer in self._observers:
            observer.on_mishap(text, trace)

    def on_deployed(self, time_us: int) -> None:
        """Tell each."""
        for observer in self._observers:
            observer.on_deployed(time_us)

    def on_end(self, time_us: int) -> None:
        """Tell each."""
        for observer in self._observers:
            observer.on_end(time_us)
