"""The script that a page runs once it shows a view: write texts, follow the theme, answer the kernel's pulse."""

from __future__ import annotations

from typing import Any

from bokeh.models import ColumnDataSource, CustomJS

from workbench.dashboard.html import Texts
from workbench.dashboard.theme import Paint


class Pulse:
    """A sign of life from the kernel, and the page's answer to it.

    Attributes:
        source: columns ``beat`` (a counter) and ``live`` (1 while more is to come).
        echo: the page sets it to the beat whose frame it has painted (or, where it is hidden and paints nothing, seen).
        count: the last beat.
    """

    def __init__(self) -> None:
        self.source = ColumnDataSource({"beat": [0], "live": [1]})
        self.echo = ColumnDataSource({"beat": [0]})
        self.count = 0

    def beat(self, over: bool) -> None:
        """Tell the page that the kernel is there, and whether more is to come."""
        self.count += 1
        self.source.data = {"beat": [self.count], "live": [0 if over else 1]}


def page_script(root: Any, pulse: Pulse, texts: Texts, paint: Paint) -> CustomJS:
    """What runs when the document is ready. `root` must refer to it, for example by its tags."""
    pieces = [[name, div] for name, div in texts.divs.items()]
    args = {
        "root": root, "pulse": pulse.source, "echo": pulse.echo, "texts": texts.source, "pieces": pieces,
        "painted": paint.painted,
    }  # fmt: skip
    return CustomJS(args=args, code=_PAGE)


_PAGE = """
const themed = () => {
  const light = document.body.dataset.jpThemeLight
  return light === undefined ? window.matchMedia("(prefers-color-scheme: dark)").matches : light === "false"
}
let dark = null, quiet = false, heard = Date.now()
const classes = () => {
  const css_classes = ["wb-root", ...(dark ? ["wb-dark"] : []), ...(quiet ? ["wb-quiet"] : [])]
  root.setv({css_classes}, {sync: false})
}
const follow = () => {
  if (themed() === dark) return
  dark = themed()
  for (const [model, attribute, in_light, in_dark] of painted)
    model.setv({[attribute]: dark ? in_dark : in_light}, {sync: false})
  classes()
}
const views = new Map(), written = new Map()
const write = () => {
  for (const [name, div] of pieces) {
    const text = texts.get_column(name)[0]
    if (written.get(name) === text) continue
    if (!views.has(name)) views.set(name, cb_context.index.find_one(div))
    const place = views.get(name)?.markup_el
    if (place == null) { views.delete(name); continue }
    place.innerHTML = text
    written.set(name, text)
  }
}
const listen = () => {
  heard = Date.now()
  const beat = [...pulse.get_column("beat")]
  let answered = false
  const answer = () => {
    if (answered || root.document == null) return
    answered = true
    echo.data = {beat}
  }
  requestAnimationFrame(() => setTimeout(answer, 0))
  setTimeout(answer, 500)
}
follow()
const observer = new MutationObserver(follow)
observer.observe(document.body, {attributes: true, attributeFilter: ["data-jp-theme-light"]})
pulse.properties.data.change.connect(listen)
write()
texts.properties.data.change.connect(write)
texts.patching.connect(write)
const timer = setInterval(() => {
  if (root.document == null) {
    clearInterval(timer)
    observer.disconnect()
    return
  }
  const silent = pulse.get_column("live")[0] === 1 && Date.now() - heard > 6000
  if (silent !== quiet) { quiet = silent; classes() }
}, 1000)
"""
