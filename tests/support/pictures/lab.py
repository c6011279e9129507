"""JupyterLab with the sidebar, dashboards in cells and docked, the menu, a notice and the launcher, in both themes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from browsing import chromium, jupyter
from lab_front import Front

from pictures.files import SCHEMES, shoot
from pictures.jobs import DELAYS, FLIGHTS, SECOND

SIZE = {"width": 1600, "height": 1000}
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}


def take() -> Iterator[Path]:
    """Take all of them."""
    with TemporaryDirectory() as place, chromium(moving=True) as browser:
        home, root = Path(place, "home"), Path(place, "notebooks")
        home.mkdir()
        root.mkdir()
        with jupyter(home, root) as url:
            page = browser.new_page(viewport=SIZE)
            front = Front(page, url, root)
            yield from _launcher(front)
            (root / "data.py").write_text(FLIGHTS)
            start = "%load_ext workbench\nimport workbench as wb\nfrom data import flights\n"
            front.open("flights.ipynb", f"{start}\n{DELAYS.strip()}", SECOND.strip(), 'job.view("graph")')
            for cell in range(3):
                front.run_cell(cell)
            front.appears(".wb-Job[data-job=late-flights]")
            yield from _docked(front)
            yield from _menu(front)
            page.evaluate("window.jupyterapp.serviceManager.sessions.shutdownAll()")


def _launcher(front: Front) -> Iterator[Path]:
    front.execute("launcher:create", wait=False)
    front.appears(".jp-LauncherCard", "Streaming Tutorial")
    for scheme in SCHEMES:
        dress(front, scheme)
        yield shoot(front.page, f"jupyterlab-launcher-{scheme}")


def _docked(front: Front) -> Iterator[Path]:
    """A view in the cell and two views beside the notebook, one above the other, once they have something to show."""
    front.page.wait_for_function(f"() => ({PICTURES})().some(count => count > 10)")
    front.dock(["delays", "checkpoints"], ["late-flights", "latency"])
    front.page.wait_for_function(f"() => ({PICTURES})().length === 3 && ({PICTURES})().every(count => count > 60)")
    front.page.evaluate("window.jupyterapp.shell.activateById(window.jupyterapp.shell.currentWidget.id)")
    for scheme in SCHEMES:
        dress(front, scheme)
        yield shoot(front.page, f"jupyterlab-{scheme}")


def _menu(front: Front) -> Iterator[Path]:
    """The menu of the views over a job that has just restarted, which a notice tells, as none shows it."""
    front.page.evaluate(UNSEEN)
    for scheme in SCHEMES:
        dress(front, scheme)
        front.execute("workbench:fail", job="delays", task="aggregate[1]")
        front.appears(".jp-Notification-Toast-warning", "delays restarted from its latest checkpoint")
        front.page.get_by_role("menuitem", name="Streaming", exact=True).click()
        front.page.locator(".lm-Menu-itemLabel", has_text="Open View").hover()
        front.appears("#jp-mainmenu-workbench-views")
        yield shoot(front.page, f"jupyterlab-menu-{scheme}")
        front.page.keyboard.press("Escape")
        front.page.keyboard.press("Escape")
        front.page.evaluate("window.jupyterapp.commands.execute('apputils:dismiss-notification')")


UNSEEN = """() => {
    const widgets = [...window.jupyterapp.shell.widgets('main')]
    widgets.find(widget => widget.context).content.widgets[2].model.outputs.clear()
    for (const widget of widgets) if (widget.job === 'delays') widget.dispose()
}"""
"""Closes both views of the first job."""
PICTURES = """() => (window.Bokeh?.documents ?? []).flatMap(document => [...document._all_models.values()]
    .filter(model => model.type === "ColumnDataSource" && model.columns().join() === "beat,live")
    .map(model => model.get_column("beat")[0]))"""
"""How many pictures each display has been sent."""


def dress(front: Front, scheme: str) -> None:
    front.page.evaluate(
        "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme}).then(() => null)", THEMES[scheme]
    )
    is_dark = str(scheme == "dark").lower()
    front.page.wait_for_function(f"document.body.dataset.jpThemeLight === '{is_dark}' ? false : true")
    front.page.wait_for_timeout(1500)  # a theme fades in, and Bokeh paints after it
