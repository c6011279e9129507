"""A Chromium and a Jupyter server for whoever looks at the workbench as people do: browser tests and pictures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from workbench.cli.checks.machine import find_browser
from workbench.lab.bench.looking.lab_server import jupyter_server

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

PATIENCE_MS = 180_000
"""After which something does not come to a page at all: a busy machine paints a dashboard within a minute."""


@contextmanager
def chromium(*, moving: bool = False) -> Iterator[Any]:
    """A Chromium, driven by Playwright.

    Args:
        moving: show what moves along the edges of a graph, too; a page without it takes half of the processor's time.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGUMENTS)
        if not moving:
            browser.new_page = partial(browser.new_page, reduced_motion="reduce")
        yield browser
        browser.close()


READY = "() => window.Bokeh?.documents[0]?._all_models.size > 0"
"""Whether a page shows a view."""


def opened(browser: Any, url: str, height: int = 1000, *, every: bool = True, **options: Any) -> Any:
    """A page with a view; its ``problems`` are what went wrong on it, and scripts that ran though they must not.

    Args:
        every: show the cards of all views; those that matter now take a third of the work to paint.
        options: further ones of the page, as Playwright names them.
    """
    page = browser.new_page(viewport={"width": 1400, "height": height}, **options)
    page.set_default_timeout(PATIENCE_MS)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda message: page.problems.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: page.problems.append(f"a script ran: {dialog.message}"))
    page.goto(url.replace("localhost", "127.0.0.1"))
    page.wait_for_function(READY)
    if every:
        show_all(page)
    return page


def show_all(page: Any) -> None:
    """Show the cards of all views of a dashboard, if it lets one choose."""
    views = page.get_by_role("group", name="Views").get_by_text("All", exact=True)
    if views.count():
        views.first.click()


def jupyter(home: Path, root: Path) -> AbstractContextManager[str]:
    """The URL of a JupyterLab that shows `root` and keeps everything of its own in `home`."""
    return jupyter_server(home, root, TOKEN)
