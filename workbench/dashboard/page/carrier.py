"""The carrier of a dashboard to its page: separate comms, or a Jupyter widget in front ends without such comms.

In JupyterLab and Notebook 7 the script of an output can open comms. In VS Code and Colab it cannot: only widgets are
connected to the kernel there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from workbench.errors import SettingError, unknown

COMM, WIDGET = "comm", "widget"

WIDGETS = "workbench.dashboard.page.widget_carrier"
"""The module that makes widgets, loaded when the first one is shown, because its packages take time to import."""

SETTING = "WORKBENCH_CARRIER"
"""The environment variable that decides for every dashboard of the process; ``%env`` sets it in a notebook."""

VSCODE = ("VSCODE_PID", "VSCODE_CWD")
"""Variables that VS Code sets in the environment of kernels, and of all other processes that it starts."""

JUPYTER_SERVER = "JPY_SESSION_NAME"
"""A variable that a Jupyter server sets for its kernels. A server that was started in VS Code's terminal also passes on
VS Code's variables, but its pages are opened in a browser."""

VSCODE_CELL = "vscode-"
"""The beginning of the id of a cell that VS Code runs: it is the cell's URI. It comes with the request to run the cell,
so it also identifies VS Code if it uses a Jupyter server that was started elsewhere."""

VSCODE_NOTEBOOK = "__vsc_ipynb_file__"
"""The variable in the notebook's namespace in which VS Code stores the path of the notebook."""

COLAB = "COLAB_RELEASE_TAG"


def choose(
    carrier: str | None = None,
    environment: Mapping[str, str] | None = None,
    names: Mapping[str, Any] | None = None,
) -> str:
    """Choose the carrier of a dashboard: ``"comm"`` or ``"widget"``.

    Args:
        carrier: the user's choice; None: the value of `SETTING` or, without it, the one that suits the front end.
        environment: the process's environment; None: this process's.
        names: those of the notebook's own namespace; None: this process's.

    Raises:
        SettingError: there is no such carrier.

    Example:
        >>> choose(environment={"VSCODE_PID": "4711"}, names={})
        'widget'
        >>> choose(environment={"VSCODE_PID": "4711", "JPY_SESSION_NAME": "flights.ipynb"}, names={})
        'comm'
    """
    environment = os.environ if environment is None else environment
    names = vars(sys.modules["__main__"]) if names is None else names
    asked = carrier or environment.get(SETTING)
    if asked:
        if asked not in (COMM, WIDGET):
            raise SettingError(unknown("carrier", asked, (COMM, WIDGET)))
        return asked
    started_by_vscode = any(name in environment for name in VSCODE) and JUPYTER_SERVER not in environment
    in_vscode = started_by_vscode or VSCODE_NOTEBOOK in names or cell_id(names).startswith(VSCODE_CELL)
    return WIDGET if in_vscode or COLAB in environment else COMM


def cell_id(names: Mapping[str, Any]) -> str:
    """The id of the running cell, as the front end writes it; "" if there is none.

    Args:
        names: those of the notebook's own namespace.
    """
    get_ipython = names.get("get_ipython")  # IPython puts it there; in a plain process there is no such name
    request = getattr(get_ipython() if callable(get_ipython) else None, "parent_header", None)
    return str(request.get("metadata", {}).get("cellId", "")) if isinstance(request, Mapping) else ""
