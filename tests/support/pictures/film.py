"""A short film of JupyterLab: a job starts beside its notebook, its buffer timeout is changed, and a task fails."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from browsing import chromium, jupyter
from lab_front import Front
from PIL import Image

from pictures.files import FOLDER, SCHEMES
from pictures.jobs import FLIGHTS
from pictures.lab import dress

SIZE = {"width": 1440, "height": 900}
WIDTH = 1080
"""Of the film, in pixels: text is still readable beside a README's own."""
SPACED_S = 0.08
"""Of the pictures that the browser paints, those are left out that follow the last one sooner."""
LAST_MS = 2_000
"""How long the last picture stands before the film begins again."""
PIPELINE = """%%stream delays --parallelism 2 --buffer-timeout 200ms --checkpoint-interval 1s
(flights
    .key_by("origin")
    .window(wb.tumbling("1h"))
    .aggregate(flights=wb.count(), worst=wb.max("dep_delay")))"""
STORY = (("%stream set buffer_timeout = 5ms", 8.0), ("%stream fail aggregate[1]", 9.0))
"""Cells, and for how many seconds the film goes on after each has run."""
OPENING_S = 4.0


def take() -> Iterator[Path]:
    """Take it in both themes."""
    for scheme in SCHEMES:
        with TemporaryDirectory() as place, chromium(moving=True) as browser:
            home, root = Path(place, "home"), Path(place, "notebooks")
            home.mkdir()
            root.mkdir()
            (root / "data.py").write_text(FLIGHTS)
            with jupyter(home, root) as url:
                front = Front(browser.new_page(viewport=SIZE), url, root)
                dress(front, scheme)
                yield _filmed(front, scheme)
                front.page.evaluate("window.jupyterapp.serviceManager.sessions.shutdownAll()")


def _filmed(front: Front, scheme: str) -> Path:
    start = "%load_ext workbench\nimport workbench as wb\nfrom data import flights"
    front.open("delays.ipynb", start, PIPELINE, *(cell for cell, _ in STORY))
    front.execute("application:toggle-left-area")
    for cell in range(2):
        front.run_cell(cell)
    front.appears(".wb-root")
    front.page.wait_for_timeout(12_000)
    with _screencast(front.page) as pictures:
        front.page.wait_for_timeout(1_000 * OPENING_S)
        for cell, (_, lasts_s) in enumerate(STORY, 2):
            front.run_cell(cell, wait=False)
            front.page.wait_for_timeout(1_000 * lasts_s)
    frames: list[tuple[float, bytes]] = []
    for at, data in pictures:
        if not frames or at - frames[-1][0] >= SPACED_S:
            frames.append((at, data))
    lasting = [round(1_000 * (after - at)) for (at, _), (after, _) in pairwise(frames)] + [LAST_MS]
    path = FOLDER / f"film-{scheme}.webp"
    first, *others = [Image.open(io.BytesIO(data)).convert("RGB") for _, data in frames]
    first.save(path, save_all=True, append_images=others, duration=lasting, loop=0, quality=50, method=4)
    return path


@contextmanager
def _screencast(page: Any) -> Iterator[list[tuple[float, bytes]]]:
    """What the browser paints during the block: when, in seconds, and the picture as JPEG."""
    pictures: list[tuple[float, bytes]] = []
    session = page.context.new_cdp_session(page)

    def painted(frame: dict[str, Any]) -> None:
        session.send("Page.screencastFrameAck", {"sessionId": frame["sessionId"]})
        pictures.append((frame["metadata"]["timestamp"], base64.b64decode(frame["data"])))

    session.on("Page.screencastFrame", painted)
    height = round(WIDTH * SIZE["height"] / SIZE["width"])
    session.send("Page.startScreencast", {"format": "jpeg", "quality": 95, "maxWidth": WIDTH, "maxHeight": height})
    yield pictures
    session.send("Page.stopScreencast")
    session.detach()
