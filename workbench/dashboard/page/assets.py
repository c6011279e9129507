"""Loads BokehJS into a notebook page from the Jupyter server, without a network and without storing it in the notebook.

Panel's server extension, which is active if Panel is installed next to Jupyter, serves the files of BokehJS and Panel.
Only the page knows the server's base URL, so the page decides. If there is no such server (a notebook on a static
host), the page uses the public CDN; if that fails, too, it says what to do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import bokeh
import panel
from panel.io.notebook import PYVIZ_PROXY, JupyterCommManagerBinary

from workbench.dashboard.charts.static import script
from workbench.dashboard.page.carrier import SETTING


def loader_html(plot_id: str, script_id: str, inputs: Iterable[str]) -> str:
    """HTML that loads BokehJS into the page, and starts a view's script once the view is displayed.

    (The event ``document_ready`` never arrives in a notebook: a document waits for all its roots, and one of them is
    Panel's comm manager, which has nothing to display.)

    Args:
        plot_id: id of the view's root model.
        script_id: id of a CustomJS that the root refers to.
        inputs: ids of the models that a user can change. Panel's comm manager would send back every change of every
            model, including changes that the kernel has just sent: a slider that follows a setting would tune the job.
    """
    note = f"wb-note-{plot_id}"
    options = {
        "bokehVersion": bokeh.__version__, "panelVersion": panel.__version__, "plot": plot_id, "start": script_id,
        "inputs": sorted(inputs), "note": note, "setting": SETTING,
    }  # fmt: skip
    add_comms = JupyterCommManagerBinary.js_manager
    code = (
        f"{script('notebook')}\nshowView({json.dumps(options)}, () => {{\n{PYVIZ_PROXY}\n}}, () => {{\n{add_comms}\n}})"
    )
    return (
        f"<div id='{note}' role='status'></div><script type='application/javascript'>(() => {{\n{code}\n}})()</script>"
    )
