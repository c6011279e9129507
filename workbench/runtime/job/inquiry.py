"""Delivers questions to the tasks that can answer them, and collects the answers."""

from __future__ import annotations

from workbench.plan.physical import PhysicalGraph
from workbench.runtime.messages.messages import Query
from workbench.runtime.messages.queries import Question
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.stage import Stage


class Inquiry:
    """The open questions of one job; every method is called on the master's turn.

    Args:
        stage: lets tasks answer between two steps.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._open: list[Question] = []

    def ask(self, question: Question, graph: PhysicalGraph, execution: Execution) -> None:
        """Pass the question to the tasks that own the state asked for."""
        names = question.tasks(graph)
        question.ask(names)
        self._open.append(question)
        for task in execution.tasks:
            if task.name in names:
                self._stage.inspect(task, Query(question))

    def answered(self, task: str, question: Question, found: object) -> None:
        """A task has answered."""
        question.answer(task, found)
        self._open = [other for other in self._open if other.open]

    def attempt_over(self, reason: str) -> None:
        """The attempt is over: no task is left to answer."""
        for question in self._open:
            question.refuse(reason)
        self._open.clear()
