"""Cells of a kernel as in a notebook, with their durations."""

from __future__ import annotations

import ast
import time
from pathlib import Path
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from workbench.errors import WorkbenchError

PATIENCE_S = 120.0


class CellError(WorkbenchError):
    """A cell failed."""


class Cells:
    """Runs cells in a kernel.

    Args:
        client: the front end's side of the kernel's channels.
    """

    def __init__(self, client: BlockingKernelClient) -> None:
        self._client = client
        client.start_channels()
        client.wait_for_ready(timeout=PATIENCE_S)

    def run(self, code: str) -> None:
        """Run a cell."""
        self._reply(code, {})

    def ask(self, expression: str) -> Any:
        """The value of an expression of plain data."""
        told = self._reply("", {"value": expression})["user_expressions"]["value"]
        if told["status"] != "ok":
            raise CellError(f"{expression} failed in the kernel: {told['ename']}: {told['evalue']}")
        return ast.literal_eval(told["data"]["text/plain"])

    def cell_seconds(self, code: str) -> float:
        """The time from sending a cell to receiving its reply."""
        begin = time.perf_counter()
        self._reply(code, {})
        return time.perf_counter() - begin

    def close(self) -> None:
        """Close the channels; the kernel stays."""
        self._client.stop_channels()

    def _reply(self, code: str, expressions: dict[str, str]) -> dict[str, Any]:
        # A kernel aborts what arrives in the moment after a failed cell, unless that cell says that it should not.
        content: dict[str, Any] = self._client.execute(
            code,
            reply=True,
            timeout=PATIENCE_S,
            user_expressions=expressions,
            store_history=False,
            stop_on_error=False,
        )["content"]
        if content["status"] != "ok":
            raise CellError(f"a cell failed in the kernel: {content.get('ename')}: {content.get('evalue')}")
        return content


class NotebookKernel(Cells):
    """A separate kernel and its cells (a context manager).

    Example:
        ``with NotebookKernel() as kernel: kernel.ask("1 + 1")`` gives 2.
    """

    def __init__(self) -> None:
        self._manager = KernelManager(kernel_name="python3", transport="ipc")  # no port is opened
        self._manager.start_kernel()
        super().__init__(self._manager.blocking_client())

    def __enter__(self) -> NotebookKernel:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
        self._manager.shutdown_kernel(now=True)


class JoinedKernel(Cells):
    """The cells of a kernel that was started elsewhere.

    Args:
        connection: its connection file.
    """

    def __init__(self, connection: Path) -> None:
        client = BlockingKernelClient(connection_file=str(connection))
        client.load_connection_file()
        super().__init__(client)
