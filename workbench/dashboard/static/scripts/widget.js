/**
 * The page's side of a dashboard that comes as a widget, in the form that anywidget takes.
 *
 * It gets BokehJS and Panel's models from the kernel where the page has none, so it needs neither a network nor a
 * Jupyter server. The document is Panel's, comm manager included: while the document is made, a comm manager of ours is
 * in the place of the one that Panel asks for its comms.
 */

import { findBokeh, sendOnly, hideDefine } from "./bokeh.js"

/** A message that is not answered is sent again after this long, then after twice as long, and so on. */
const KNOCK_MS = 1000
const LAST_KNOCK_MS = 32000

/** VS Code takes the output of a cell off its page without a word, for example when the cell is run again, and may put
 * one back. A view that has been off the page for so long is given up, and one that comes back is made anew. */
const AWAY_MS = 5000

const WAITING = "The dashboard appears when the kernel answers."
const NOTE = "This dashboard is a widget: after a restart of the kernel, run its cell again."

/** @param {DataView<ArrayBuffer>} packed */
const unpack = (packed) =>
  new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text()

/** @param {string[]} texts */
const run = (texts) => {
  const showDefine = hideDefine()
  try {
    for (const text of texts) {
      const script = document.createElement("script")
      script.textContent = text
      document.head.appendChild(script)
      script.remove()
    }
  } finally {
    showDefine()
  }
}

/**
 * @param {string} wanted the version of BokehJS
 * @param {() => void} addProxy Panel's script that makes `window.PyViz`
 */
export const renderWith =
  (wanted, addProxy) =>
  /** @param {{model: any, el: HTMLElement}} widget */
  async ({ model, el }) => {
    const { bokeh, isPresent } = findBokeh(wanted)
    /** @type {string | null} */
    let view = null
    const control = await model.widget_manager.get_model(model.get("control"))
    const tell = (/** @type {string} */ ask, more = {}) => {
      try {
        control.send({ view, ask, ...more })
      } catch (gone) {
        console.debug("The kernel went away before the dashboard could talk to it.", gone)
      }
    }
    /** @type {string | null} */
    let wants = null
    const want = (/** @type {string} */ ask) => {
      wants = ask
      const knock = (/** @type {number} */ pause) => {
        if (wants !== ask) return
        tell(ask)
        if (pause <= LAST_KNOCK_MS) setTimeout(knock, pause, 2 * pause)
      }
      knock(KNOCK_MS)
    }
    const said = document.createElement("div")
    const place = document.createElement("div")
    said.setAttribute("role", "status")
    said.style.cssText = "font-size: 12px; opacity: 0.8; padding: 2px 4px"
    said.textContent = WAITING
    place.setAttribute("data-lm-suppress-shortcuts", "true")
    el.append(said, place)

    const ignore = (/** @type {any} */ _message) => {}
    let listen = ignore
    let acknowledge = ignore
    /** @type {any} */
    let shown = null
    const make = (/** @type {string} */ json) => {
      addProxy()
      const replaced = window.PyViz.comm_manager
      window.PyViz.comm_manager = {
        register_target: (/** @type {string} */ _plot, /** @type {string} */ _name, /** @type {any} */ listener) => {
          listen = listener
        },
        get_client_comm: (/** @type {string} */ _plot, /** @type {string} */ _name, /** @type {any} */ listener) => {
          acknowledge = listener
          return { active: true, send: (/** @type {any} */ data) => tell("change", { data }) }
        },
      }
      try {
        return bokeh().require("@bokehjs/document").Document.from_json(JSON.parse(json))
      } finally {
        window.PyViz.comm_manager = replaced
      }
    }
    const show = async (/** @type {any} */ { document: json, root, start, inputs }) => {
      const mine = view
      shown = make(json)
      const acted = new Set(inputs)
      for (const one of shown.roots()) if (one.client_comm_id !== undefined) sendOnly(one, acted)
      await bokeh().embed.add_document_standalone(shown, place)
      if (view !== mine) return
      shown.get_model_by_id(start).execute(shown.get_model_by_id(root))
      said.textContent = el.closest("[data-lecture]") === null ? NOTE : ""
      tell("ready")
    }
    const answered = async (/** @type {any} */ content, /** @type {DataView<ArrayBuffer>[]} */ buffers) => {
      if (content.view !== view) return
      try {
        if (content.scripts !== undefined) {
          const texts = await Promise.all(buffers.map(unpack))
          if (!isPresent()) run(texts)
          const there = window.Bokeh?.version ?? "none"
          if (!isPresent()) throw new Error(`it needs BokehJS ${wanted} and the page has ${there}`)
          want("open")
        } else if (content.document !== undefined) {
          wants = null
          await show(content)
        } else if (content.problem !== undefined) {
          wants = null
          said.textContent = content.problem
        } else acknowledge({ metadata: content.metadata, content: { data: content.data } })
      } catch (error) {
        said.textContent = `The dashboard cannot be shown (${/** @type {Error} */ (error).message}): reload the page.`
        console.error(error)
      }
    }
    const framed = (/** @type {any} */ content, /** @type {DataView[]} */ buffers) => {
      if (content.view === view) listen({ metadata: content.metadata, content: { data: content.data }, buffers })
    }
    control.on("msg:custom", answered)
    model.on("msg:custom", framed)
    const enter = () => {
      view = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`
      said.textContent = WAITING
      want(isPresent() ? "open" : "scripts")
    }
    const leave = () => {
      tell("close")
      wants = view = null
      listen = acknowledge = ignore
      shown?.clear()
      shown = null
      place.replaceChildren()
    }
    let there = Date.now()
    const watch = setInterval(() => {
      if (el.isConnected) {
        there = Date.now()
        if (view === null) enter()
      } else if (view !== null && Date.now() - there > AWAY_MS) leave()
    }, 1000)
    enter()
    return () => {
      clearInterval(watch)
      control.off("msg:custom", answered)
      model.off("msg:custom", framed)
      if (view !== null) leave()
    }
  }
