"""A view as one HTML file that needs no network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from bokeh.embed import file_html
from bokeh.resources import INLINE

from workbench.dashboard.charts.static import page
from workbench.dashboard.shown.view import View
from workbench.telemetry.whole_file import replaced

_PANELS_SCRIPT = re.compile(r'<script src="static/extensions/panel/[^"]*"></script>')
"""Once imported, Panel adds a file to every page that Bokeh writes; this page has no Panel models."""


def write_page(path: Path, view: View, title: str, template: str = "ground", **variables: Any) -> Path:
    """Write a view, whose document has only its root; an existing file is replaced.

    Args:
        template: one of the pages.
        variables: of the template.

    Returns:
        The path.
    """
    document = view.root.document or view.document()
    document.js_on_event("document_ready", view.script)
    html = file_html(
        document, INLINE, title=title, template=page(template), template_variables=variables,
        suppress_callback_warning=True,
    )  # fmt: skip
    with replaced(path) as draft:
        draft.write_text(_PANELS_SCRIPT.sub("", html), encoding="utf-8")
    return path
