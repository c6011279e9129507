"""Slowness on purpose: the methods of `Job` that make its operators slow, or stop them taking anything."""

from __future__ import annotations

from collections.abc import Callable

from workbench.api.job.job_handle import JobHandle
from workbench.arguments import true_or_false
from workbench.durations import format_duration, parse_duration
from workbench.errors import JobError, SettingError, unknown
from workbench.runtime.settings.settings import Settings

LONGEST_REST_US = 60_000_000


class JobSlowness(JobHandle):
    """What can be made slow; `Job` inherits it."""

    def slow_down(self, operator: str, by: str) -> None:
        """Have an operator's tasks rest after every buffer, as if its function were slower (F2-4).

        It holds nobody else up: other tasks of the slot go on meanwhile. What is in force is in
        ``job.status()["slow_down"]``, and stays in force over restarts.

        Args:
            operator: its uid; what is chained with it is slowed down too.
            by: time for each buffer, ``"5ms"``, at most a minute; ``"0ms"``: no longer.

        Raises:
            JobError: no such operator.
            SettingError: not such a time.

        Example:
            >>> numbers = wb.Stream.from_table(pa.table({"n": range(10)}), rate=5).sink_to(wb.TableSink("numbers"))
            >>> job = numbers.run("slowed", driver="stepping")
            >>> job.slow_down("numbers", "5ms"); job.status()["slow_down"]
            'numbers:5ms'
            >>> job.stall("numbers"); job.status()["stall"]
            'numbers'
            >>> job.slow_down("numbers", "0ms"); job.stall("numbers", False)
            >>> job.driver.run_until(lambda: job.over), job.table().num_rows
            (True, 10)
        """
        uid = self._operator(operator)
        us = parse_duration(by, "slow_down")
        if us > LONGEST_REST_US:
            raise SettingError(
                f"slow_down is {by!r}: an operator rests at most {format_duration(LONGEST_REST_US)} for each buffer; "
                "stall it to have it take nothing"
            )
        self._change(lambda settings: settings.with_slowed(uid, us), f"slow_down = {uid}:{format_duration(us)}")

    def stall(self, operator: str, stalled: bool = True) -> None:
        """Have an operator, such as a sink, take no records until ``stall(operator, False)``.

        Barriers behind its records wait too, so no aligned checkpoint completes meanwhile; an unaligned one does,
        because its barriers overtake. Those in front of it become back-pressured, up to the sources.

        Source: F2-4, D6.

        Args:
            operator: its uid; what is chained with it stands still too.
            stalled: False lets it go on.

        Raises:
            JobError: no such operator.
        """
        uid = self._operator(operator)
        stalled = true_or_false(stalled, "stalled")
        word = "stalled" if stalled else "no longer stalled"
        self._change(lambda settings: settings.with_stalled(uid, stalled), f"{uid} is {word}")

    def _operator(self, name: str) -> str:
        self._check_running()
        known = [uid for vertex in self._master.graph.vertices for uid in vertex.uids]
        if name not in known:
            raise JobError(unknown("operator", name, known))
        return name

    def _change(self, change: Callable[[Settings], Settings], text: str) -> None:
        master = self._master
        self._apply(lambda: master.apply(change(master.settings), text))
