"""A short film of JupyterLab: a job starts beside its notebook, its buffer timeout is changed, and a task fails."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
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
EVERY_S = 0.3
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
    frames: list[tuple[float, Image.Image]] = []
    _watch(front.page, OPENING_S, frames)
    for cell, (_, lasts_s) in enumerate(STORY, 2):
        front.run_cell(cell, wait=False)
        _watch(front.page, lasts_s, frames)
    begins = [at for at, _ in frames]
    lasting = [round(1_000 * (after - at)) for at, after in zip(begins, [*begins[1:], begins[-1] + 2], strict=True)]
    path = FOLDER / f"film-{scheme}.webp"
    first, *others = [picture for _, picture in frames]
    first.save(path, save_all=True, append_images=others, duration=lasting, loop=0, quality=60, method=4)
    return path


def _watch(page: Any, seconds: float, frames: list[tuple[float, Image.Image]]) -> None:
    """Take pictures for some time, each with the moment at which it was taken."""
    begin = time.monotonic()
    while (now := time.monotonic()) - begin < seconds:
        picture = Image.open(io.BytesIO(page.screenshot(timeout=120_000))).convert("RGB")
        height = round(WIDTH * picture.height / picture.width)
        frames.append((now, picture.resize((WIDTH, height), Image.Resampling.LANCZOS)))
        page.wait_for_timeout(max(0.0, 1_000 * (EVERY_S - (time.monotonic() - now))))
