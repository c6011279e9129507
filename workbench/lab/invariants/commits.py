"""I7, I8 and I13: which rows are visible, which checkpoints are complete, and what a completion commits."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from workbench.connectors.contract.base import table_of
from workbench.drivers.contract.probes import Point
from workbench.lab.invariants.invariant import Invariant
from workbench.lab.invariants.model import Model
from workbench.runtime.tasks.execution import Execution

_PART = re.compile(r"part-(\d+)-\d+-\d+\.parquet")


class Commits(Invariant):
    """Epochs of sinks and completions of checkpoints (see `Invariant` for the other arguments).

    Args:
        folders: of the sinks that commit files, by uid.
    """

    points = frozenset[Point](
        (
            "process",
            "snapshot begins",
            "snapshot ends",
            "state write ends",
            "manifest write begins",
            "manifest write ends",
            "commit begins",
            "commit ends",
            "rows begin",
            "rows end",
            "state read",
        )
    )

    def __init__(self, model: Model, report: Callable[[str], None], *, folders: Mapping[str, Path]) -> None:
        super().__init__(model, report)
        self._folders = folders
        self._durable: set[int] = set()
        self._written: defaultdict[str, set[str]] = defaultdict(set)
        self._completing: dict[str, int] = {}
        self._left: set[int] = set()  # being completed by a process when it ended: its successor may find them
        self._pending_rows: dict[str, int] = {}
        self._epochs: dict[str, dict[int, int]] = {}
        self._visible: defaultdict[str, set[int]] = defaultdict(set)
        self._tables: dict[str, str] = {}  # the names of the sinks' tables, by the sinks' uids

    def process_begins(self) -> None:
        self._visible.clear()
        self._left |= set(self._completing.values())
        self._completing.clear()

    def attached(self, execution: Execution) -> None:
        stays = self.model.stays
        self._pending_rows = {owner: n for owner, n in self._pending_rows.items() if owner.partition("/")[0] in stays}
        self._epochs = {owner: rows for owner, rows in self._epochs.items() if owner.partition("/")[0] in stays}
        self._tables = {
            uid: name
            for vertex in self.model.master.graph.vertices
            for node, uid in zip(vertex.nodes, vertex.uids, strict=True)
            if (name := table_of(node.spec))
        }

    def _is_newest(self, number: int) -> bool:
        """Whether the job would resume from this checkpoint; one with a newer successor does not matter."""
        latest = self.model.master.restart_point
        return latest is None or latest.checkpoint_id < number

    def reached(self, point: Point, owner: str, number: int) -> None:
        match point:
            case "process":
                self._pending_rows[owner] = self._pending_rows.get(owner, 0) + number
            case "snapshot begins":
                self._epochs.setdefault(owner, {})[number] = self._pending_rows.pop(owner, 0)
            case "snapshot ends":
                self._check_files(owner.rpartition("/")[2])
            case "state write ends":
                place, _, task = owner.rpartition("/")
                self._written[place].add(task)
            case "manifest write begins":
                missing = sorted(self.model.tasks.keys() - self._written[owner])
                if missing:
                    self.violated("I13", f"checkpoint {number} is completed without the state of {missing[0]}")
                self._completing[owner] = number
            case "state read" if number in self._left:
                self._durable.add(number)
            case "manifest write ends":
                self._durable.add(number)
                self._completing.pop(owner, None)
                if self.model.attempt_of.get(number) != self.model.attempt and self._is_newest(number):
                    self.violated("I13", f"checkpoint {number} was completed after the job had continued without it")
            case "commit begins":
                if number not in self._durable:
                    self.violated("I13", f"{owner} was notified that checkpoint {number} is complete, but it is not")
            case "commit ends":
                self._on_committed(owner, number)
            case "rows begin":
                self._check_visible(owner, number)
            case "rows end":
                self._visible[owner].add(number)

    def _on_committed(self, owner: str, checkpoint_id: int) -> None:
        task, _, uid = owner.partition("/")
        shard = f"{self._tables.get(uid)}/{task[task.rindex('[') + 1 : -1]}"
        if uid in self._tables and shard in self._visible:
            for epoch, rows in self._epochs.get(owner, {}).items():
                if epoch <= checkpoint_id and rows and epoch not in self._visible[shard]:
                    self.violated(
                        "I8", f"{owner}: checkpoint {checkpoint_id} left the rows of epoch {epoch} uncommitted"
                    )
        self._check_files(uid)

    def _check_files(self, uid: str) -> None:
        folder = self._folders.get(uid)
        if folder is None:
            return
        with suppress(FileNotFoundError):  # the sink has not created it yet
            for path in folder.iterdir():
                if match := _PART.fullmatch(path.name):
                    self._check_visible(uid, int(match[1]))

    def _check_visible(self, owner: str, epoch: int) -> None:
        if epoch > max(self._durable, default=0):
            self.violated("I7", f"{owner}: the rows of epoch {epoch} are visible before a checkpoint covers them")
