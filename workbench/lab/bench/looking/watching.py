"""The JavaScript of the benchmark of the dashboard: it counts what a page receives and paints, and moves a slider."""

from __future__ import annotations

import json

COUNT = """
window.workbench = {painted: {}, bytes: 0}
const Socket = window.WebSocket
window.WebSocket = class extends Socket {
  constructor(...rest) {
    super(...rest)
    this.addEventListener("message", (event) => { workbench.bytes += event.data.length ?? event.data.byteLength })
  }
}
"""
"""Runs on a page before anything of its own."""

WATCHED = "workbench"
"""What has been counted: the frames that each view has ``painted``, and the ``bytes`` of all messages."""

_VIEWS = "(window.Bokeh?.documents ?? []).map((document) => [...document._all_models.values()])"
WATCH = f"""{_VIEWS}.filter((models) => {{
  const sources = models.filter((model) => model.type === "ColumnDataSource")
  const pulse = sources.find((source) => source.columns().join() === "beat,live")
  const echo = sources.find((source) => source.columns().join() === "beat,painting_ms")
  if (pulse === undefined || pulse.get_column("beat")[0] < 3) return false
  if (workbench.painted[echo.id] === undefined) {{
    workbench.painted[echo.id] = 0
    echo.properties.data.change.connect(() => workbench.painted[echo.id] += 1)
  }}
  return true
}}).length"""
"""Counts, from now on, the frames of each view that is alive and was not counted yet; how many views are alive.

A view is alive once it has got three frames.
"""

_TUNE = f"""new Promise((resolve) => {{
  const models = {_VIEWS}.find((models) => models.some((model) => model.name === "buffer_timeout"))
  const slider = models.find((model) => model.name === "buffer_timeout")
  const texts = models.find((model) => model.type === "ColumnDataSource" && model.columns().includes("piece 0"))
  const wanted = `in force: <b>${{VALUE}}</b>`, begin = Date.now()
  const seen = () => texts.columns().some((name) => texts.get_column(name)[0] === wanted)
  const look = () => {{
    if (seen() || Date.now() - begin > PATIENCE_MS) resolve([begin, seen() ? Date.now() - begin : -1])
    else setTimeout(look, 5)
  }}
  slider.value = slider.format.args.steps.indexOf(VALUE)
  look()
}})"""


def tuning(value: str, patience_s: float) -> str:
    """Move the slider of the buffer timeout.

    Returns:
        An expression of when that was, in milliseconds since 1970, and of the milliseconds until the view says that
        the value is in force; -1 if it does not.
    """
    return _TUNE.replace("VALUE", json.dumps(value)).replace("PATIENCE_MS", str(patience_s * 1e3))
