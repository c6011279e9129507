"""The JupyterLab front end of the Streaming Workbench, built into a prebuilt labextension."""


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Where the built front end lies, for ``jupyter labextension develop``."""
    return [{"src": "labextension", "dest": "workbench-jupyterlab"}]
