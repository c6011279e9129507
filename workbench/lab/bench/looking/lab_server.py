"""A separate Jupyter server, which keeps everything in one folder and ends with the process that started it."""

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

from workbench.errors import WorkbenchError

START_S = 90.0
END_S = 20.0
_PLACES = ("JUPYTER_CONFIG", "JUPYTERLAB_SETTINGS", "JUPYTERLAB_WORKSPACES", "JUPYTER_RUNTIME")


class ServerError(WorkbenchError):
    """The Jupyter server does not answer."""


def runtime_folder(home: Path) -> Path:
    """The folder in which a server with this home keeps the connection files of its kernels."""
    return home / "jupyter_runtime"


@contextmanager
def jupyter_server(home: Path, root: Path, token: str) -> Iterator[str]:
    """Serve JupyterLab on loopback, with its application exposed to the page as ``jupyterapp``.

    Args:
        home: an empty folder for settings, logs and connection files.
        root: the folder that it shows.
        token: grants access to the server.

    Yields:
        The URL, without the token.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        f"--IdentityProvider.token={token}", "--LabApp.expose_app_in_browser=True", "--LabApp.news_url=None",
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
            if server.poll() is not None or time.monotonic() > deadline:
                last = (home / "log").read_text().strip().splitlines()[-1:] or ["it has said nothing"]
                raise ServerError(f"JupyterLab does not answer at {url}: {last[0]}")
            time.sleep(0.1)
        yield url
    finally:
        _end(server)


def _end(server: subprocess.Popen[bytes]) -> None:
    """End the server: it waits for ever if told to end at the moment a kernel starts; kernels end with it."""
    server.terminate()
    try:
        server.wait(END_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except OSError:
        return False
    return True
