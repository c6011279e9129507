"""Where a notebook page gets BokehJS from: the Jupyter server, without a network and without weight in the notebook.

Panel's server extension, which is on wherever Panel is installed beside Jupyter, serves the files of BokehJS and of
Panel. Only the page knows the server's base URL, so the page decides; where no such server is found (a notebook on a
static host) it falls back on the public CDN, and where that fails too it says what to do.
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
    """HTML that makes sure that BokehJS is on the page, and starts a view's script once the view is there.

    (The event ``document_ready`` never comes in a notebook: a document waits for all of its roots, and one of them is
    Panel's comm manager, which has nothing to show.)

    Args:
        plot_id: id of the view's root model.
        script_id: id of a CustomJS that the root refers to.
        inputs: ids of the models that a person acts on. Panel's comm manager would send back every change of every
            model, also what the kernel has just sent: a slider that follows would tune the job.
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
