"""A headless Chromium that opens one page and evaluates expressions in it.

It is controlled through two pipes (``--remote-debugging-pipe``, the DevTools protocol), so no port is opened and no
driver is needed.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from typing import Any

from workbench.errors import WorkbenchError
from workbench.lab.bench.looking.processes import cpu_seconds

_OPTIONS = (
    "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--mute-audio",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost, EXCLUDE 127.0.0.1",
)  # fmt: skip
_START = 'read=$1 write=$2; shift 2; exec "$@" 3<"/dev/fd/$read" 4>"/dev/fd/$write"'
"""The browser reads commands from descriptor 3 and writes to 4; a shell can connect any two to them."""


class BrowserError(WorkbenchError):
    """The browser did not do what was requested."""


class Chromium:
    """One page in a separate browser (a context manager).

    Args:
        program: the Chromium.
        screen: width and height of the page in pixels.
    """

    def __init__(self, program: str, screen: tuple[int, int]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="workbench-chromium-", ignore_cleanup_errors=True)
        theirs_read, ours_write = os.pipe()
        ours_read, theirs_write = os.pipe()
        self._process = subprocess.Popen(
            [
                "sh", "-c", _START, "sh", str(theirs_read), str(theirs_write), program, *_OPTIONS,
                f"--user-data-dir={self._folder.name}", f"--window-size={screen[0]},{screen[1]}", "about:blank",
            ],
            pass_fds=(theirs_read, theirs_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_read)
        os.close(theirs_write)
        self._write, self._read = os.fdopen(ours_write, "wb", 0), os.fdopen(ours_read, "rb", 0)
        self._rest, self._count, self._session = b"", 0, ""
        target = self._page()
        self._session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.command("Page.enable")
        size = {"width": screen[0], "height": screen[1], "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", **size)

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser."""
        self._write.close()  # it ends when its input is closed
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._read.close()
        self._folder.cleanup()

    def open(self, url: str, before: str = "") -> None:
        """Go to a page; `before` is JavaScript that runs there before its own."""
        if before:
            self.command("Page.addScriptToEvaluateOnNewDocument", source=before)
        self.command("Page.navigate", url=url)

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is awaited.

        Raises:
            BrowserError: the expression threw.
        """
        got = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise BrowserError(f"{expression[:80]!r} failed on the page: {got['exceptionDetails']}")
        return got["result"].get("value")

    def cpu_seconds(self) -> float:
        """Processor time of all of its processes so far."""
        return cpu_seconds(self._process.pid)

    def command(self, method: str, **arguments: Any) -> Mapping[str, Any]:
        """The result of a command of the DevTools protocol.

        Raises:
            BrowserError: it was rejected, or the browser has ended.
        """
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": arguments}
        if self._session:
            message["sessionId"] = self._session
        try:
            self._write.write(json.dumps(message).encode() + b"\0")
        except OSError as error:
            raise BrowserError(f"the browser ended before it was asked for {method}") from error
        while (answer := self._receive(method)).get("id") != self._count:
            pass  # an event
        if "error" in answer:
            raise BrowserError(f"the browser refused {method}: {answer['error']['message']}")
        result: Mapping[str, Any] = answer["result"]
        return result

    def _receive(self, method: str) -> Mapping[str, Any]:
        while b"\0" not in self._rest:
            piece = self._read.read(1 << 20)
            if not piece:
                raise BrowserError(f"the browser ended when it was asked for {method}: does it start by hand?")
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\0")
        message: Mapping[str, Any] = json.loads(line)
        return message

    def _page(self) -> str:
        """The page that is open."""
        return next(
            str(target["targetId"])
            for target in self.command("Target.getTargets")["targetInfos"]
            if target["type"] == "page"
        )
