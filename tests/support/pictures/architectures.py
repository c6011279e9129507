"""The stepper at a telling moment of each architecture of fault tolerance, for its half screen in the documentation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from browsing import chromium

import workbench as wb
from pictures.files import SCHEMES, shoot
from pictures.pages import GROUND

INKS = {
    "light": "color:#1f2328",
    "dark": "color:#e6e8eb;--wb-ink:#e6e8eb;--wb-box:#242a32;--wb-card:#111111;--wb-warn:#e0a83c;--wb-bad:#ff7b72;"
    "--wb-good:#4cc46a",
}
"""The colours of a notebook's theme."""


def _until(*texts: str) -> Callable[[Any], None]:
    def reach(job: Any) -> None:
        for text in texts:
            assert job.stepper.until_told(text), text

    return reach


def _lost(job: Any) -> None:
    assert job.stepper.until_told("Flush 1")
    assert job.stepper.until_told("table[0] sent record")


MOMENTS: dict[str, tuple[Any, Callable[[Any], None]]] = {
    "snapshots": ("snapshots", _until("took barrier 1")),
    "stop-the-world": (wb.stop_the_world("50ms"), _until("sent barrier 1")),
    "acks": (wb.acks(granularity="record", message_timeout="1s"), _until("root 2 is acknowledged", "took record")),
    "transactions": (wb.transactions(), _until("count[0] made one atomic write")),
    "micro-batches": (wb.micro_batches("50ms", batch_size=4), _until("is released", "table[0] sent record")),
    "changelog": (wb.changelog("50ms", offset_interval="200ms"), _until("Entry 2 of the log")),
    "at-most-once": (wb.at_most_once("50ms"), _lost),
}
"""By the name of the architecture: its value, and how the job comes to the moment."""


def take() -> Iterator[Path]:
    """Take all of them."""
    before = Path.cwd()
    with TemporaryDirectory() as place, chromium(moving=True) as browser:
        os.chdir(place)
        try:
            for name, (architecture, reach) in MOMENTS.items():
                yield from _taken(browser, name, architecture, reach)
        finally:
            os.chdir(before)


def _taken(browser: Any, name: str, architecture: Any, reach: Callable[[Any], None]) -> Iterator[Path]:
    stream = wb.Stream.from_table(pa.table({"k": list("abac") * 15}), rate=100)
    counts = stream.key_by("k").aggregate(n=wb.count()).uid("count").rebalance().filter("n > 0")
    job = counts.sink_to(wb.TableSink("counts", upsert_key="k")).run(
        name,
        driver="stepping",
        fault_tolerance=architecture,
        buffer_size=1,
        buffer_timeout="0ms",
        checkpoint_interval="50ms",
    )
    reach(job)
    scene = job.stepper.scene()
    for scheme in SCHEMES:
        page = browser.new_page(viewport={"width": 1000, "height": 600}, color_scheme=scheme)
        style = f"margin:0;font:14px/1.5 system-ui,sans-serif;background:{GROUND[scheme]};{INKS[scheme]}"
        page.set_content(f"<meta charset='utf-8'><body style='{style}'><div id='scene'>{scene._repr_html_()}</div>")
        yield shoot(page, f"architecture-{name}-{scheme}", "#scene")
        page.close()
    job.cancel()
    job.wait()
