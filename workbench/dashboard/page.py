"""The script that a page runs once it shows a view: write texts, follow the theme, answer the kernel's pulse."""

from __future__ import annotations

from typing import Any

from bokeh.models import ColumnDataSource, CustomJS, Plot

from workbench.dashboard.calm import CALM
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
        "painted": paint.painted, "plots": list(root.select({"type": Plot})),
    }  # fmt: skip
    return CustomJS(args=args, code=CALM + _PAGE)


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
const calmed = new Set()
const calm_new_plots = () => {
  for (const plot of plots) {
    const view = calmed.has(plot) ? null : cb_context.index.find_one(plot)
    if (view == null) continue
    calmed.add(plot)
    calm(view)
  }
}
// Only what differs is touched: the browser keeps the layout of the rest of a table.
const become = (old, fresh) => {
  let was = old.firstChild, now = fresh.firstChild
  while (now !== null) {
    const next = now.nextSibling
    if (was === null) old.appendChild(now)
    else if (was.nodeName !== now.nodeName) {
      old.replaceChild(now, was)
      was = now.nextSibling
    } else {
      if (was.nodeType === Node.TEXT_NODE) {
        if (was.data !== now.data) was.data = now.data
      } else {
        for (const {name, value} of now.attributes) if (was.getAttribute(name) !== value) was.setAttribute(name, value)
        if (was.attributes.length > now.attributes.length)
          for (const {name} of [...was.attributes]) if (!now.hasAttribute(name)) was.removeAttribute(name)
        become(was, now)
      }
      was = was.nextSibling
    }
    now = next
  }
  while (was !== null) {
    const next = was.nextSibling
    was.remove()
    was = next
  }
}
const views = new Map(), written = new Map(), page = document.createElement("template")
const write = () => {
  for (const [name, div] of pieces) {
    const text = texts.get_column(name)[0]
    if (written.get(name) === text) continue
    if (!views.has(name)) views.set(name, cb_context.index.find_one(div))
    const place = views.get(name)?.markup_el
    if (place == null) { views.delete(name); continue }
    page.innerHTML = text
    become(place, page.content)
    written.set(name, text)
  }
}
// Texts are written once a frame and after the plots were painted, so that these find nothing to lay out anew.
let due = false
const write_soon = () => {
  if (due) return
  due = true
  queueMicrotask(() => requestAnimationFrame(() => { due = false; write() }))
}
const listen = () => {
  heard = Date.now()
  calm_new_plots()
  const beat = [...pulse.get_column("beat")]
  let answered = false
  const answer = () => {
    if (answered || root.document == null) return
    answered = true
    echo.data = {beat}
  }
  queueMicrotask(() => requestAnimationFrame(() => setTimeout(answer, 0)))
  setTimeout(answer, 500)
}
follow()
const observer = new MutationObserver(follow)
observer.observe(document.body, {attributes: true, attributeFilter: ["data-jp-theme-light"]})
pulse.properties.data.change.connect(listen)
write()
texts.properties.data.change.connect(write_soon)
texts.patching.connect(write_soon)
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
