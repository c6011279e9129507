"""``workbench demo``: the printed URL opens the notebook, and one Ctrl-C ends the server."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_printed_url_opens_the_notebook_and_one_interrupt_ends_it(tmp_path: Path) -> None:
    places = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("CONFIG", "RUNTIME", "DATA")}
    command = [sys.executable, "-m", "workbench", "demo", "--", "--no-browser", "--port=0", "--ip=127.0.0.1"]
    ours, terminal = os.openpty()  # it asks whether it shall end only where somebody can answer
    server = subprocess.Popen(
        command, cwd=tmp_path, env=os.environ | places, stderr=subprocess.PIPE, stdin=terminal, text=True
    )
    assert server.stderr is not None
    guard = threading.Timer(120, server.kill)
    guard.start()
    reader = threading.Thread(target=lambda: list(server.stderr or ()), daemon=True)
    try:
        urls = (re.search(r"http://127\.0\.0\.1:\d+(/\S*)\?token=", line) for line in server.stderr)
        assert next(url[1] for url in urls if url) == "/lab/tree/01_first_stream.ipynb"
        reader.start()
        server.send_signal(signal.SIGINT)
        assert server.wait(30) == 0
    finally:
        guard.cancel()
        server.kill()
        server.wait()
        if reader.ident is not None:
            reader.join(30)
        server.stderr.close()
        os.close(ours)
        os.close(terminal)
