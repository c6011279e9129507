"""Partial matches by key: what each has bound, and what it waits for."""

from __future__ import annotations

from time import monotonic

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import column, none, scrolled
from workbench.dashboard.contract.actions import choice, group, offer
from workbench.dashboard.contract.job_port import OVER
from workbench.dashboard.contract.part import Easel, Part
from workbench.dashboard.views.matches.partials_html import KeyMatches, html, ranked, summary
from workbench.telemetry.frames import Frame

KIND = "match"
"""The kind of the operators."""
LOOKED_AT = 200
"""Keys of each subtask that are asked; those with partial matches come first."""
LISTED, LISTED_ALONE = 8, 60
EVERY_S = 2.0


class MatchesPart(Part):
    """One operator at a time; it asks the running operator every two seconds, off the pump."""

    hint = "partial matches by key, queried while the job runs"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._asked_at = -EVERY_S
        self._frame: Frame | None = None
        self._most = LISTED_ALONE if easel.alone else LISTED
        self._shown = False
        self.operator = choice("Operator", 110)
        self.operator.on_change("value", lambda _attribute, _old, _new: self._forget())
        self._summary = easel.texts.piece("Pattern", "matches")
        self._table = easel.texts.piece("Partial matches", "matches")
        listed = scrolled(self._table.div, 600 if easel.alone else 220)
        self.models = [column([group(self.operator), self._summary.div, listed])]
        self.inputs = (self.operator,)

    def update(self, frame: Frame) -> None:
        self._frame = frame
        offer(self.operator, [operator.uid for operator in frame.operators if operator.kind == KIND])
        if not self.operator.options:
            self._summary.write(none("No operator of this job finds patterns: use key_by(...).match(wb.pattern(...))."))
            return
        if frame.state in OVER and not self._shown:
            self._summary.write(none("The job has ended, so its partial matches can no longer be queried."))
        if not self.easel.runs_live():
            self._summary.write(none("A query would advance a stepping job: its stepper tells what each step binds."))
        elif frame.state == "RUNNING" and monotonic() - self._asked_at >= EVERY_S:
            self._ask()

    def _ask(self) -> None:
        job, uid = self.easel.job, self.operator.value
        self._asked_at = monotonic()

        def held() -> tuple[int, int, list[KeyMatches]]:
            state = job.operator_state(uid)
            items = tuple(state.items(LOOKED_AT))
            return state.size(), len(items), ranked(items)

        def told(result: tuple[int, int, list[KeyMatches]] | None, problem: str | None) -> None:
            if uid != self.operator.value:
                return
            if result is None:
                self._summary.write(none(wording.html_text(problem)))
                return
            size, looked_at, keys = result
            self._shown = True
            self._summary.write(summary(keys, size, looked_at, self._pattern()))
            self._table.write(html(keys, self._most))

        self.easel.background.run("matches", held, told)

    def _pattern(self) -> str:
        assert self._frame is not None
        return next((o.description for o in self._frame.operators if o.uid == self.operator.value), "")

    def _forget(self) -> None:
        self._asked_at = -EVERY_S
        self._table.write("")
