"""Runs the pipeline of a job again on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.dashboard.contract.actions import Answer, button, choice, group, offer
from workbench.dashboard.contract.job_on_spark import JobOnSpark
from workbench.dashboard.contract.part import Easel
from workbench.spark.masters import OFFERED


class OtherEngine:
    """The choice of a master with its button, and the job that runs on Spark then.

    Args:
        easel: of the view.
        instead_of: models that have no meaning for a job on Spark.

    Attributes:
        group: the controls.
        on_spark: the controls and the picture of the job on Spark.
    """

    def __init__(self, easel: Easel, instead_of: Sequence[Any]) -> None:
        self._easel = easel
        self._answer = Answer("run again on", easel.texts, easel.background)
        self.master = choice("Master of Spark", 180)
        offer(self.master, OFFERED)
        self.run_again = button(
            "Run again on Spark", self._run_again, "Stop the job, and run its pipeline from the beginning on Spark"
        )
        self.group = group(self.master, self.run_again, self._answer.div)
        self.on_spark = JobOnSpark(easel, instead_of)

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The models that a user changes."""
        return self.master, *self.on_spark.inputs

    def update(self, over: bool) -> None:
        """Remove the answer after a while, and the job on Spark if the kernel's runs again."""
        self._answer.update()
        if not over:
            self.on_spark.leave()

    def _run_again(self) -> None:
        job, master = self._easel.job, self.master.value
        self._answer.ask_slowly(
            "run again on Spark",
            lambda: job.run_again(engine="spark", spark=master),
            f"runs again on Spark, {master}",
            self.on_spark.show,
        )
