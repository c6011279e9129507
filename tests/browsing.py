"""A Chromium and a Jupyter server for whoever looks at the workbench as people do: browser tests and pictures."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.cli.checks.machine import find_browser

CHROMIUM = find_browser()
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]
"""The last one: a page that asks for anything but this machine gets nothing."""

TOKEN = "test"
START_S = 90
_PLACES = ("JUPYTER_CONFIG", "JUPYTERLAB_SETTINGS", "JUPYTERLAB_WORKSPACES", "JUPYTER_RUNTIME")


@contextmanager
def chromium() -> Iterator[Any]:
    """A Chromium, driven by Playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def jupyter(home: Path, root: Path, application: str = "jupyterlab") -> Iterator[str]:
    """The URL of a Jupyter server that shows `root` and keeps everything of its own in `home`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", application, "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        f"--IdentityProvider.token={TOKEN}", "--LabApp.expose_app_in_browser=True", "--LabApp.news_url=None",
        f"--ServerApp.root_dir={root}",
    ]  # fmt: skip
    settings = home / "jupyterlab_settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')  # else it asks whether it may
    places = {f"{name}_DIR": str(home / name.lower()) for name in _PLACES} | {"IPYTHONDIR": str(home / "ipython")}
    with (home / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | places)
    try:
        url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + START_S
        while not _answers(f"{url}/api"):
            assert time.monotonic() < deadline, (home / "log").read_text()
            time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        server.wait(timeout=30)


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except OSError:
        return False
    return True
