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

from workbench.dashboard.page.carrier import SETTING

KNOCK_MS = 1_000
"""JupyterLab makes a subshell for each comm, so that its messages pass a busy cell; a comm that is opened before its
subshell is there waits for the cell. Panel opens comms at once and nothing tells it when the subshell is there, so the
script opens ours again until the kernel is heard: after this long, then twice as long, and so on."""

LAST_KNOCK_MS = 32_000
"""The longest such pause; the kernel is gone if it has not been heard by then."""

NO_KERNEL_MS = 3_000
"""A page that was loaded again shows its outputs before the notebook has its kernel. Panel waits 2.5 s for it and then
gives up without a word, so the script asks again after this long."""

FIND_BOKEH = """
  const wanted = %s
  const bokeh = () => window.Bokeh?.version === wanted ? window.Bokeh : window.Bokeh?.versions?.get?.(wanted)
  const present = () => bokeh()?.Panel !== undefined
"""
"""JavaScript: ``bokeh()``, the BokehJS of this version, and whether it and Panel's models are ``present()``."""

HUSH = """
  const hush = (manager, acted) => {
    const tell = manager._document_changed.bind(manager)
    manager._document_changed = (event) => {
      for (const one of event.events ?? [event])
        if (one.sync && (one.kind === "MessageSent" || acted.has(one.model?.id))) tell(one)
    }
  }
"""
"""JavaScript: ``hush(manager, acted)`` has Panel's comm manager send only changes of the models with these ids."""

_SCRIPT = """
(() => {
  %(find)s
  %(proxy)s
  if (window.PyViz.comm_manager === undefined) {
    %(comms)s
  }
  const lines = (plot) => {
    const document = bokeh()?.index.find_one_by_id(plot)?.model?.document
    return (document?.roots() ?? []).filter((model) => model.client_comm_id !== undefined)
  }
  // What the page sent before the way was open is lost, and Panel waits for the answer to it before it sends more.
  const release = (plot) => lines(plot).forEach((line) => line.on_ack({metadata: {}}))
  const waiting = window.workbench_plots ??= new Set()
  waiting.add(%(plot)s)
  const manager = window.PyViz.comm_manager
  if (manager.heard === undefined) {
    const heard = manager.heard = new Set(), listening = new Map()
    const register = manager.register_target.bind(manager)
    manager.register_target = (plot, name, listen) => {
      listening.set(plot, () => register(plot, name, (...message) => {
        const first = !heard.has(plot)
        heard.add(plot)
        const result = listen(...message)
        if (first) release(plot)
        return result
      }))
      listening.get(plot)()
    }
    const connect = manager.get_client_comm.bind(manager)
    manager.get_client_comm = (plot, ...rest) => {
      const kernel = waiting.delete(plot) ? window.PyViz.kernels[plot] : undefined
      if (kernel !== undefined) {
        const create = kernel.connectToComm
        kernel.connectToComm = (...name) => {
          let comm = create(...name), created = Date.now(), listener = null
          const knock = (pause, first) => {
            if (heard.has(plot)) return
            try {
              if (comm.active) comm.open(...first)
              else if (Date.now() - created >= %(no_kernel_ms)s) {
                listening.get(plot)?.()
                comm = create(...name)
                comm.onMsg = listener
                created = Date.now()
              }
            } catch (gone) {
              console.debug("The kernel went away before the dashboard could talk to it.", gone)
              return
            }
            if (pause <= %(last_knock_ms)s) setTimeout(knock, pause, comm.active ? 2 * pause : pause, first)
          }
          return {
            active: true,
            set onMsg(listen) { comm.onMsg = listener = listen },
            open: (...first) => knock(%(knock_ms)s, first),
            send: (...message) => comm.send(...message),
          }
        }
      }
      return connect(plot, ...rest)
    }
  }
  const say = (text) => {
    const note = document.getElementById(%(note)s)
    if (note !== null) note.textContent = text
  }
  if (document.body.dataset.vscodeThemeKind !== undefined)
    say("VS Code connects only widgets to the kernel: run '%%env %(setting)s=widget' in a cell, then show this again.")
  const acted = new Set(%(inputs)s)
  %(hush)s
  let left = 1200
  const start = () => {
    const root = bokeh()?.index.find_one_by_id(%(plot)s)?.model
    const script = root?.document?.get_model_by_id(%(start)s)
    if (script != null) {
      lines(%(plot)s).forEach((line) => hush(line, acted))
      script.execute(root)
    } else if (left-- > 0) setTimeout(start, 50)
  }
  start()
  const add = (url) => new Promise((resolve, reject) => {
    const script = document.createElement("script")
    script.src = url
    script.onload = resolve
    script.onerror = () => reject(new Error(url))
    document.head.appendChild(script)
  })
  const load = async (bokeh, tail, panel) => {
    for (const file of ["bokeh", "bokeh-gl", "bokeh-widgets", "bokeh-tables"]) await add(`${bokeh}${file}${tail}`)
    await add(`${panel}panel.min.js`)
    if (!present()) throw new Error(`another version than ${wanted}`)
  }
  const all = async () => {
    const config = document.getElementById("jupyter-config-data")
    const base = config === null ? "/" : JSON.parse(config.textContent).baseUrl
    const hidden = window.define
    window.define = undefined
    try {
      await load(`${base}panel-preview/static/js/`, ".min.js", `${base}panel-preview/static/extensions/panel/`)
    } catch {
      const tail = `-${wanted}.min.js`
      await load("https://cdn.bokeh.org/bokeh/release/", tail, `https://cdn.holoviz.org/panel/${%(panel)s}/dist/`)
    } finally {
      window.define = hidden
    }
  }
  if (present()) return
  window.workbench_bokeh ??= all()
  window.workbench_bokeh.catch((error) => say(
    `The dashboard needs BokehJS ${wanted}, which could not be loaded (${error.message}): run ` +
    "'import panel; panel.extension(inline=True)' in a cell, then show the dashboard again."
  ))
})()
"""


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
    script = _SCRIPT % {
        "proxy": PYVIZ_PROXY,
        "comms": JupyterCommManagerBinary.js_manager,
        "find": FIND_BOKEH % json.dumps(bokeh.__version__),
        "hush": HUSH,
        "setting": SETTING,
        "panel": json.dumps(panel.__version__),
        "note": json.dumps(note),
        "no_kernel_ms": NO_KERNEL_MS,
        "plot": json.dumps(plot_id),
        "start": json.dumps(script_id),
        "inputs": json.dumps(sorted(inputs)),
        "knock_ms": KNOCK_MS,
        "last_knock_ms": LAST_KNOCK_MS,
    }
    return f"<div id='{note}' role='status'></div><script type='application/javascript'>{script}</script>"
