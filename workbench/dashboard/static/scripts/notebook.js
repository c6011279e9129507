/** What the HTML of a view does in a notebook page: finds BokehJS, opens the comms, and starts the view's script. */

import { findBokeh, hideDefine, sendOnly } from "./bokeh.js"

/** JupyterLab makes a subshell for each comm, so that its messages pass a busy cell; a comm that is opened before its
 * subshell is there waits for the cell. Panel opens comms at once and nothing tells it when the subshell is there, so
 * comms are opened again until the kernel is heard: after this long, then twice as long, and so on. */
const KNOCK_MS = 1000

/** The longest such pause; the kernel is gone if it has not been heard by then. */
const LAST_KNOCK_MS = 32000

/** A page that was loaded again shows its outputs before the notebook has its kernel. Panel waits 2.5 s for it and then
 * gives up without a word, so the comm is asked for again after this long. */
const NO_KERNEL_MS = 3000

/**
 * Has Panel's comm manager open comms again until the kernel is heard.
 *
 * @param {any} manager
 * @param {Set<string>} waiting plots whose comm has yet to be opened
 * @param {(plot: string) => void} release called when the kernel of a plot is heard for the first time
 */
const knockUntilHeard = (manager, waiting, release) => {
  /** @type {Set<string>} */
  const heard = (manager.heard = new Set())
  /** @type {Map<string, () => void>} */
  const listening = new Map()
  const register = manager.register_target.bind(manager)
  manager.register_target = (
    /** @type {string} */ plot, /** @type {string} */ name, /** @type {(...message: any[]) => any} */ listen
  ) => {
    const again = () =>
      register(plot, name, (/** @type {any[]} */ ...message) => {
        const first = !heard.has(plot)
        heard.add(plot)
        const result = listen(...message)
        if (first) release(plot)
        return result
      })
    listening.set(plot, again)
    again()
  }
  const connect = manager.get_client_comm.bind(manager)
  manager.get_client_comm = (
    /** @type {string} */ plot, /** @type {string} */ name, /** @type {any[]} */ ...rest
  ) => {
    const kernel = waiting.delete(plot) ? window.PyViz.kernels[plot] : undefined
    if (kernel !== undefined) {
      delete window.PyViz.comms[name] // of a notebook that was closed since, with its connection to the kernel
      const create = kernel.connectToComm
      kernel.connectToComm = (/** @type {any[]} */ ...name) => {
        let comm = create(...name)
        let created = Date.now()
        /** @type {any} */
        let listener = null
        const knock = (/** @type {number} */ pause, /** @type {any[]} */ first) => {
          if (heard.has(plot)) return
          try {
            if (comm.active) comm.open(...first)
            else if (Date.now() - created >= NO_KERNEL_MS) {
              listening.get(plot)?.()
              comm = create(...name)
              comm.onMsg = listener
              created = Date.now()
            }
          } catch (gone) {
            console.debug("The kernel went away before the dashboard could talk to it.", gone)
            return
          }
          if (pause <= LAST_KNOCK_MS) setTimeout(knock, pause, comm.active ? 2 * pause : pause, first)
        }
        return {
          active: true,
          set onMsg(/** @type {any} */ listen) {
            comm.onMsg = listener = listen
          },
          open: (/** @type {any[]} */ ...first) => knock(KNOCK_MS, first),
          send: (/** @type {any[]} */ ...message) => comm.send(...message),
        }
      }
    }
    return connect(plot, name, ...rest)
  }
}

/** @param {string} url */
const addScript = (url) =>
  new Promise((resolve, reject) => {
    const script = document.createElement("script")
    script.src = url
    script.onload = resolve
    script.onerror = () => reject(new Error(url))
    document.head.appendChild(script)
  })

/**
 * Loads BokehJS and Panel's models from the Jupyter server, or else from the public CDN.
 *
 * @param {string} wanted the version of BokehJS
 * @param {string} panelVersion
 * @param {() => boolean} isPresent
 */
const loadBokeh = async (wanted, panelVersion, isPresent) => {
  const load = async (/** @type {string} */ bokeh, /** @type {string} */ tail, /** @type {string} */ panel) => {
    for (const file of ["bokeh", "bokeh-gl", "bokeh-widgets", "bokeh-tables"]) await addScript(`${bokeh}${file}${tail}`)
    await addScript(`${panel}panel.min.js`)
    if (!isPresent()) throw new Error(`another version than ${wanted}`)
  }
  const config = document.getElementById("jupyter-config-data")
  const base = config === null ? "/" : JSON.parse(config.textContent).baseUrl
  const showDefine = hideDefine()
  try {
    await load(`${base}panel-preview/static/js/`, ".min.js", `${base}panel-preview/static/extensions/panel/`)
  } catch {
    const tail = `-${wanted}.min.js`
    await load("https://cdn.bokeh.org/bokeh/release/", tail, `https://cdn.holoviz.org/panel/${panelVersion}/dist/`)
  } finally {
    showDefine()
  }
}

/**
 * @param {object} options
 * @param {string} options.bokehVersion
 * @param {string} options.panelVersion
 * @param {string} options.plot id of the view's root model
 * @param {string} options.start id of a CustomJS that the root refers to, run once the view is there
 * @param {string[]} options.inputs ids of the models that a person acts on
 * @param {string} options.note id of the element for messages
 * @param {string} options.setting the environment variable that chooses the carrier
 * @param {() => void} addProxy Panel's script that makes `window.PyViz`
 * @param {() => void} addComms Panel's script that makes its comm manager
 */
export const showView = (options, addProxy, addComms) => {
  const { bokehVersion: wanted, plot, start } = options
  const { bokeh, isPresent } = findBokeh(wanted)
  addProxy()
  if (window.PyViz.comm_manager === undefined) addComms()
  const linesOf = (/** @type {string} */ plot) => {
    const document = bokeh()?.index.find_one_by_id(plot)?.model?.document
    return /** @type {any[]} */ (document?.roots() ?? []).filter((model) => model.client_comm_id !== undefined)
  }
  // What the page sent before the way was open is lost, and Panel waits for the answer to it before it sends more.
  const release = (/** @type {string} */ plot) => linesOf(plot).forEach((line) => line.on_ack({ metadata: {} }))
  const waiting = (window.workbench_plots ??= new Set())
  waiting.add(plot)
  const manager = window.PyViz.comm_manager
  if (manager.heard === undefined) knockUntilHeard(manager, waiting, release)
  manager.heard.delete(plot)

  const say = (/** @type {string} */ text) => {
    const note = document.getElementById(options.note)
    if (note !== null) note.textContent = text
  }
  if (document.body.dataset.vscodeThemeKind !== undefined)
    say(
      `VS Code connects only widgets to the kernel. Run '%env ${options.setting}=widget' in a cell, then show the ` +
        "dashboard again."
    )
  const acted = new Set(options.inputs)
  let left = 1200
  const startWhenThere = () => {
    const root = bokeh()?.index.find_one_by_id(plot)?.model
    const script = root?.document?.get_model_by_id(start)
    if (script != null) {
      linesOf(plot).forEach((line) => sendOnly(line, acted))
      script.execute(root)
    } else if (left-- > 0) setTimeout(startWhenThere, 50)
  }
  startWhenThere()
  if (isPresent()) return
  window.workbench_bokeh ??= loadBokeh(wanted, options.panelVersion, isPresent)
  window.workbench_bokeh.catch((/** @type {Error} */ error) =>
    say(
      `The dashboard needs BokehJS ${wanted}, which could not be loaded (${error.message}). Run ` +
        "'import panel; panel.extension(inline=True)' in a cell, then show the dashboard again."
    )
  )
}
