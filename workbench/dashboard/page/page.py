"""The script that a page runs once it shows a view: write texts, follow the theme, answer the kernel's pulse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bokeh.models import ColumnDataSource, CustomJS, Plot, Slider

from workbench.dashboard.charts.html import Texts
from workbench.dashboard.charts.rows import ROWS
from workbench.dashboard.charts.theme import Paint
from workbench.dashboard.page.calm import CALM
from workbench.dashboard.page.pace import ANSWER_S


class Pulse:
    """A sign of life from the kernel, and the page's answer to it.

    Attributes:
        source: columns ``beat`` (a counter) and ``live`` (1 while more is to come).
        echo: the page sets it to the beat whose frame it has painted (or, where it is hidden and paints nothing, seen),
            with the milliseconds that one took, on average since it told the kernel last.
        seen: the page sets its column ``part`` to the names of the parts that are on the screen.
        count: the last beat.
    """

    def __init__(self) -> None:
        self.source = ColumnDataSource({"beat": [0], "live": [1]})
        self.echo = ColumnDataSource({"beat": [0], "painting_ms": [0]})
        self.seen = ColumnDataSource({"part": []})
        self.count = 0

    def beat(self, over: bool) -> None:
        """Tell the page that the kernel is there, and whether more is to come."""
        self.count += 1
        self.source.data = {"beat": [self.count], "live": [0 if over else 1]}


def page_script(root: Any, pulse: Pulse, texts: Texts, paint: Paint, cards: Mapping[str, Any]) -> CustomJS:
    """What runs when the document is ready. `root` must refer to it, for example by its tags.

    Args:
        cards: the model that holds each part, by the part's name.
    """
    choices = {name: choice.source for name, choice in texts.choices.items()}
    pieces = [[name, div, choices.get(name)] for name, div in texts.divs.items()]
    args = {
        "root": root, "pulse": pulse.source, "echo": pulse.echo, "texts": texts.source, "pieces": pieces,
        "sliders": list(root.select({"type": Slider})), "painted": paint.painted, "seen": pulse.seen,
        "answer_ms": 1e3 * ANSWER_S,
        "cards": [[name, model, list(model.select({"type": Plot}))] for name, model in cards.items()],
    }  # fmt: skip
    return CustomJS(args=args, code=CALM + ROWS + _PAGE)


_PAGE = """
const themed = () => {
  const {jpThemeLight: light, vscodeThemeKind: kind} = document.body.dataset
  if (kind !== undefined) return !kind.endsWith("light")
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
// Parts that are not on the screen are not painted, and the kernel is told: it does not send what is new in them.
const in_sight = new Set()
let told = null
const tell = () => {
  const part = document.hidden ? [] : [...in_sight].sort()
  if (root.document == null || String(part) === told) return
  told = String(part)
  for (const [name, , plots] of cards)
    for (const plot of plots) plot.setv({hold_render: !part.includes(name)}, {sync: false})
  seen.data = {part}
}
const named = new Map()
const sight = new IntersectionObserver((entries) => {
  for (const {target, isIntersecting} of entries)
    isIntersecting ? in_sight.add(named.get(target)) : in_sight.delete(named.get(target))
  tell()
}, {rootMargin: "150px"})
// A plot takes no key, so it is no stop for the tab key; what can be pressed beside it says that it can, and its name.
const within = (root) => [...root.querySelectorAll("*")].flatMap((one) =>
  one.shadowRoot === null ? [one] : [one, ...within(one.shadowRoot)])
const name_stops = (plot) => {
  for (const one of within(plot.el.shadowRoot)) {
    if (one.classList.contains("bk-events")) one.tabIndex = -1
    else if (one.tabIndex === 0 && one.title) {
      one.setAttribute("role", "button")
      one.setAttribute("aria-label", one.title)
    }
  }
}
const known = new Set(), drawn = []
const know_new_views = () => {
  for (const [name, card, plots] of cards) {
    for (const model of [card, ...plots]) {
      const view = known.has(model) ? null : cb_context.index.find_one(model)
      if (view == null) continue
      known.add(model)
      if (model !== card) {
        calm(view)
        name_stops(view)
        drawn.push(view)
      } else {
        named.set(view.el, name)
        sight.observe(view.el)
      }
    }
  }
}
// A plot that was measured in the moment of a change of the theme, in which the page has no layout, takes itself for
// hidden; as its size is the same before and after, nothing tells it that it is not.
const uncover = () => {
  for (const view of drawn) if (!view.is_displayed && view.el.offsetParent !== null) view.after_resize()
}
document.addEventListener("visibilitychange", tell)
const views = new Map(), written = new Map(), page = document.createElement("template")
const write = () => {
  for (const [name, div, choice] of pieces) {
    const text = texts.get_column(name)[0]
    if (written.get(name) === text) continue
    if (!views.has(name)) views.set(name, cb_context.index.find_one(div))
    const place = views.get(name)?.markup_el
    if (place == null) { views.delete(name); continue }
    const {el} = views.get(name)
    offer(el, choice)
    if (is_aimed_at(el)) continue
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
// The handle is what gets the focus, and BokehJS names only what is around it.
const name_handles = () => {
  for (const slider of sliders) {
    const {el} = cb_context.index.find_one(slider) ?? {}
    el?.shadowRoot?.querySelector(".noUi-handle")?.setAttribute("aria-label", el.getAttribute("aria-label"))
  }
}
let answered_at = -Infinity, painted_ms = 0, frames = 0
const listen = () => {
  heard = Date.now()
  know_new_views()
  uncover()
  const beat = [...pulse.get_column("beat")], begin = performance.now()
  let answered = false
  const answer = () => {
    if (answered || root.document == null) return
    answered = true
    const end = performance.now(), sync = end - answered_at >= answer_ms
    painted_ms += end - begin
    frames += 1
    echo.setv({data: {beat, painting_ms: [painted_ms / frames]}}, {sync})
    if (sync) [answered_at, painted_ms, frames] = [end, 0, 0]
  }
  queueMicrotask(() => requestAnimationFrame(() => setTimeout(answer, 0)))
  setTimeout(answer, 500)
}
follow()
const observer = new MutationObserver(follow)
observer.observe(document.body, {attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"]})
pulse.properties.data.change.connect(listen)
write()
texts.properties.data.change.connect(write_soon)
texts.patching.connect(write_soon)
const timer = setInterval(() => {
  if (root.document == null) {
    clearInterval(timer)
    observer.disconnect()
    sight.disconnect()
    document.removeEventListener("visibilitychange", tell)
    return
  }
  const silent = pulse.get_column("live")[0] === 1 && Date.now() - heard > 6000
  if (silent !== quiet) { quiet = silent; classes() }
  name_handles()
  write_soon()  // what a pointer has kept waiting
}, 1000)
"""
