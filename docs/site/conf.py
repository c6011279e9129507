"""How Sphinx builds the site: the pages are those of the repository, where they are, so that their links hold."""

from __future__ import annotations

import os
import re
from html import escape
from importlib.metadata import version as version_of
from pathlib import Path
from shutil import copyfile
from typing import Any

project = "Streaming Workbench"
author = "The Streaming Workbench authors"
copyright = author
NAMED = os.environ.get("DOCS_VERSION", "")
"""By ``make docs VERSION=...``: the site then is one of several, side by side in one folder."""
version = release = NAMED or version_of("streaming-workbench")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/site/index"
include_patterns = [
    "docs/*.md",
    "docs/site/*.md",
    "notebooks/course/solved/*.ipynb",
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"),
]
exclude_patterns = ["**/.ipynb_checkpoints"]

html_theme = "furo"
html_theme_options = {
    "dark_css_variables": {
        "jp-ui-font-color1": "#e6e6e6",
        "jp-layout-color0": "#131416",
        "jp-layout-color2": "#2b2e33",
        "jp-border-color1": "#6b7078",
        "jp-brand-color1": "#64b5f6",
        "jp-success-color1": "#4caf50",
        "jp-warn-color1": "#ffa000",
        "jp-error-color1": "#ef5350",
    }
}
"""The lessons' pictures take the colours of JupyterLab, whose light ones they have where there are none."""
html_title = f"Streaming Workbench {version}"
html_static_path: list[str] = []
templates_path = ["templates"]
html_sidebars = {
    "**": [
        *("sidebar/brand.html", "sidebar/search.html", "sidebar/scroll-start.html", "sidebar/navigation.html"),
        *("versions.html", "sidebar/scroll-end.html"),
    ]
}
html_context = {"is_one_of_several": bool(NAMED)}
html_show_sphinx = False
default_role = "code"

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
nb_execution_mode = "force"  # the lessons as they run now
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_execution_in_temp = True  # progress and checkpoints stay out of the repository
suppress_warnings = ["mystnb.unknown_mime_type"]

autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = True


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _solved)
    app.connect("build-finished", _front_page)


def _solved(_app: Any, name: str, source: list[str]) -> None:
    """Let the README's links to lessons lead to those that the site has: with their outputs."""
    if name == "README":
        source[0] = source[0].replace("](notebooks/course/", "](notebooks/course/solved/")


def _front_page(app: Any, error: Exception | None) -> None:
    """Let the root of the site show the start page, which lies deeper, and list all versions beside this one."""
    if error is None and app.builder.format == "html":
        text = '<!doctype html><meta http-equiv="refresh" content="0; url=docs/site/index.html"><title>Start</title>'
        (app.outdir / "index.html").write_text(text, encoding="utf-8")
        readme = (app.srcdir / "README.md").read_text(encoding="utf-8")
        for picture in re.findall(r'="(docs/images/[\w.-]+)"', readme):  # in HTML, which Sphinx leaves as it is
            (app.outdir / picture).parent.mkdir(parents=True, exist_ok=True)
            copyfile(app.srcdir / picture, app.outdir / picture)
        if NAMED:
            list_versions(app.outdir.parent)


def list_versions(folder: Path) -> list[str]:
    """Write the page that links to the versions in a folder; returns their names, the newest first."""

    def place(name: str) -> list[tuple[int, str]]:
        return [(int(part), "") if part.isdigit() else (-1, part) for part in name.lstrip("v").split(".")]

    names = sorted((path.parent.name for path in folder.glob("*/index.html")), key=place, reverse=True)
    links = "".join(f'<li><a href="{escape(name)}/index.html">{escape(name)}</a>' for name in names)
    text = f'<!doctype html><html lang="en"><title>{project}</title><h1>{project}: all versions</h1><ul>{links}</ul>'
    (folder / "index.html").write_text(text, encoding="utf-8")
    return names
