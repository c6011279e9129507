"""The page's side of a dashboard that comes as a widget: an ES module, in the form that anywidget takes.

It gets BokehJS and Panel's models from the kernel where the page has none, so it needs neither a network nor a Jupyter
server. The document is Panel's, comm manager included: while the document is made, a comm manager of ours is in the
place of the one that Panel asks for its comms.
"""

from __future__ import annotations

import json

import bokeh
from panel.io.notebook import PYVIZ_PROXY

from workbench.dashboard.page.assets import FIND_BOKEH, HUSH, KNOCK_MS, LAST_KNOCK_MS

NOTE = "Shown as a widget: once the kernel has been restarted the cell has to be run again."
"""What is different where a dashboard comes as a widget."""

WAITING = "The dashboard appears as soon as the kernel answers."

AWAY_MS = 5_000
"""VS Code takes the output of a cell off its page without a word, for example when the cell is run again, and may put
one back. A view that has been off the page for so long is given up, and one that comes back is made anew."""

_PAGE = """
const note = %(note)s, waiting = %(waiting)s
%(find)s
%(hush)s
const unpack = (packed) =>
  new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text()
const run = (texts) => {
  const hidden = window.define
  window.define = undefined
  try {
    for (const text of texts) {
      const script = document.createElement("script")
      script.textContent = text
      document.head.appendChild(script)
      script.remove()
    }
  } finally {
    window.define = hidden
  }
}
const render = async ({model, el}) => {
  let view = null
  const control = await model.widget_manager.get_model(model.get("control"))
  const tell = (ask, more) => {
    try {
      control.send({view, ask, ...more})
    } catch (gone) {
      console.debug("The kernel went away before the dashboard could talk to it.", gone)
    }
  }
  let wants = null
  const want = (ask) => {
    wants = ask
    const knock = (pause) => {
      if (wants !== ask) return
      tell(ask)
      if (pause <= %(last_knock_ms)s) setTimeout(knock, pause, 2 * pause)
    }
    knock(%(knock_ms)s)
  }
  const said = document.createElement("div"), place = document.createElement("div")
  said.setAttribute("role", "status")
  said.style.cssText = "font-size: 12px; opacity: 0.8; padding: 2px 4px"
  said.textContent = waiting
  place.setAttribute("data-lm-suppress-shortcuts", "true")
  el.append(said, place)

  let listen = () => {}, acknowledge = () => {}, shown = null
  const make = (json) => {
    %(proxy)s
    const replaced = window.PyViz.comm_manager
    window.PyViz.comm_manager = {
      register_target: (plot, name, listener) => { listen = listener },
      get_client_comm: (plot, name, listener) => {
        acknowledge = listener
        return {active: true, send: (data) => tell("change", {data})}
      },
    }
    try {
      return bokeh().require("@bokehjs/document").Document.from_json(JSON.parse(json))
    } finally {
      window.PyViz.comm_manager = replaced
    }
  }
  const show = async ({document: json, root, start, inputs}) => {
    const mine = view
    shown = make(json)
    const acted = new Set(inputs)
    for (const one of shown.roots()) if (one.client_comm_id !== undefined) hush(one, acted)
    await bokeh().embed.add_document_standalone(shown, place)
    if (view !== mine) return
    shown.get_model_by_id(start).execute(shown.get_model_by_id(root))
    said.textContent = note
    tell("ready")
  }
  const answered = async (content, buffers) => {
    if (content.view !== view) return
    try {
      if (content.scripts !== undefined) {
        const texts = await Promise.all(buffers.map(unpack))
        if (!present()) run(texts)
        const there = window.Bokeh?.version ?? "none"
        if (!present()) throw new Error(`it needs BokehJS ${wanted} and the page has ${there}`)
        want("open")
      } else if (content.document !== undefined) {
        wants = null
        await show(content)
      } else if (content.problem !== undefined) {
        wants = null
        said.textContent = content.problem
      } else acknowledge({metadata: content.metadata, content: {data: content.data}})
    } catch (error) {
      said.textContent = `The dashboard cannot be shown (${error.message}): load the page again.`
      console.error(error)
    }
  }
  const framed = (content, buffers) => {
    if (content.view === view) listen({metadata: content.metadata, content: {data: content.data}, buffers})
  }
  control.on("msg:custom", answered)
  model.on("msg:custom", framed)
  const enter = () => {
    view = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`
    said.textContent = waiting
    want(present() ? "open" : "scripts")
  }
  const leave = () => {
    tell("close")
    wants = view = null
    listen = acknowledge = () => {}
    shown?.clear()
    shown = null
    place.replaceChildren()
  }
  let there = Date.now()
  const watch = setInterval(() => {
    if (el.isConnected) {
      there = Date.now()
      if (view === null) enter()
    } else if (view !== null && Date.now() - there > %(away_ms)s) leave()
  }, 1000)
  enter()
  return () => {
    clearInterval(watch)
    control.off("msg:custom", answered)
    model.off("msg:custom", framed)
    if (view !== null) leave()
  }
}
export default {render}
"""

PAGE = _PAGE % {
    "note": json.dumps(NOTE),
    "away_ms": AWAY_MS,
    "waiting": json.dumps(WAITING),
    "find": FIND_BOKEH % json.dumps(bokeh.__version__),
    "hush": HUSH,
    "proxy": PYVIZ_PROXY,
    "knock_ms": KNOCK_MS,
    "last_knock_ms": LAST_KNOCK_MS,
}
"""JavaScript: the module."""
