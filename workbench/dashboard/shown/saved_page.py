"""A view as one HTML file that needs no network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from bokeh.embed import file_html
from bokeh.resources import INLINE

from workbench.dashboard.charts.static import page
from workbench.dashboard.shown.view import View

_PANELS_SCRIPT = re.compile(r'<script src="static/extensions/panel/[^"]*"></script>')
"""Once imported, Panel adds a file to every page that Bokeh writes; this page has no Panel models."""


def write_page(draft: Path, view: View, title: str, template: str = "ground", **variables: Any) -> None:
    """Write a view, whose document has only its root.

    Args:
        draft: of a file that is replaced; begin it before you draw the view, which takes seconds in vain otherwise.
        template: one of the pages.
        variables: of the template.
    """
    document = view.root.document or view.document()
    document.js_on_event("document_ready", view.script)
    html = file_html(
        document, INLINE, title=title, template=page(template), template_variables=variables,
        suppress_callback_warning=True,
    )  # fmt: skip
    draft.write_text(_PANELS_SCRIPT.sub("", html), encoding="utf-8")
