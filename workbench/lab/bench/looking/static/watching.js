/** Counts what a page receives and paints, and moves a slider: the benchmark of the dashboard calls these functions. */

/** A busy kernel may make the card of a slider so late. */
const CARD_MS = 20_000

/** Counts, from now on, the bytes of all messages; runs on a page before anything of its own. */
export const countBytes = () => {
  window.workbench = { painted: {}, bytes: 0 }
  window.WebSocket = class extends window.WebSocket {
    /** @param {[string | URL, (string | string[])?]} rest */
    constructor(...rest) {
      super(...rest)
      this.addEventListener("message", (event) => {
        window.workbench.bytes += event.data.length ?? event.data.byteLength
      })
    }
  }
}

/** What has been counted: the frames that each view has painted, and the bytes of all messages. */
export const counted = () => window.workbench

/** @returns {any[][]} the models of each document */
const documents = () =>
  (window.Bokeh?.documents ?? []).map((/** @type {any} */ document) => [...document._all_models.values()])

/** How many cards are still empty. */
export const coming = () =>
  documents()
    .flat()
    .filter((model) => model.css_classes?.includes("wb-coming")).length

/** Counts, from now on, the frames of each view that is alive and was not counted yet. A view is alive once it has got
 * three frames.
 *
 * @returns {number} how many views are alive
 */
export const watchViews = () => {
  const { painted } = window.workbench
  return documents().filter((models) => {
    /** @type {Source[]} */
    const sources = models.filter((model) => model.type === "ColumnDataSource")
    const pulse = sources.find((source) => source.columns().join() === "beat,live")
    const echo = sources.find((source) => source.columns().join() === "beat,painting_ms")
    if (pulse === undefined || echo === undefined || pulse.get_column("beat")[0] < 3) return false
    if (painted[echo.id] === undefined) {
      painted[echo.id] = 0
      echo.properties.data.change.connect(() => {
        painted[echo.id] += 1
      })
    }
    return true
  }).length
}

/**
 * Moves the slider of the buffer timeout. Another setting may have the same value already, such as a restart delay of
 * 0ms: what says so before the move does not count.
 *
 * @param {string} value
 * @param {number} patienceMs
 * @returns {Promise<[number, number]>} when that was, in milliseconds since 1970, and the milliseconds until the view
 *   says that the value is in force; -1 if it does not
 */
export const tune = async (value, patienceMs) => {
  const pause = () => new Promise((then) => setTimeout(then, 5))
  const within = () => documents().find((models) => models.some((model) => model.name === "buffer_timeout"))
  for (const since = Date.now(); within() === undefined && Date.now() - since < CARD_MS; ) await pause()
  const models = within()
  if (models === undefined) throw new Error(`there is no slider of the buffer timeout after ${CARD_MS / 1e3} s`)
  const slider = models.find((model) => model.name === "buffer_timeout")
  /** @type {Source[]} a card that came after the page has texts of its own */
  const texts = models.filter((model) => model.type === "ColumnDataSource")
  const wanted = `in force: <b>${value}</b>`
  const saying = () =>
    texts.flatMap((source) =>
      source
        .columns()
        .filter((name) => source.get_column(name)[0] === wanted)
        .map((name) => `${source.id} ${name}`),
    )
  const others = saying()
  const begin = Date.now()
  const isSeen = () => saying().some((place) => !others.includes(place))
  slider.value = slider.format.args.words.indexOf(value)
  while (!isSeen() && Date.now() - begin <= patienceMs) await pause()
  return [begin, isSeen() ? Date.now() - begin : -1]
}

const lab = () => window.jupyterapp

/** @param {string} path of the notebook that is opened beside the sidebar; its kernel's id is returned */
export const openNotebook = async (path) => {
  while (lab() === undefined) await new Promise((then) => setTimeout(then, 50))
  const { commands, restored, shell } = lab()
  await restored
  await commands.execute("workbench:show-jobs")
  const notebook = await commands.execute("docmanager:open", { path, kernel: { name: "python3" } })
  window.notebook = notebook
  await notebook.context.ready
  await notebook.sessionContext.ready
  await notebook.sessionContext.session.kernel.info
  shell.activateById(notebook.id)
  return notebook.sessionContext.session.kernel.id
}

/**
 * @param {number} index of the cell that is run
 * @returns {Promise<[number, string]>} the milliseconds that it took, and its result
 */
export const runCell = async (index) => {
  const begin = performance.now()
  window.notebook.content.activeCellIndex = index
  await lab().commands.execute("notebook:run-cell")
  const took = performance.now() - begin
  const { outputs, executionCount } = window.notebook.content.activeCell.model
  /** @type {any[]} */
  const shown = outputs.toJSON()
  const failed = shown.find((output) => output.output_type === "error")
  if (failed !== undefined || executionCount === null)
    throw new Error(`cell ${index}: ${failed?.evalue ?? "it was not run"}`)
  return [took, shown.map((output) => output.data?.["text/plain"] ?? "").join("")]
}

/** @returns {any[]} the docked dashboards and views */
const panels = () =>
  [...lab().shell.widgets("main")].filter((/** @type {any} */ widget) => widget.hasClass("wb-Dashboard"))

/** @param {string} job whose dashboard is docked */
export const dockDashboard = (job) => lab().commands.execute("workbench:open-dashboard", { job })

/**
 * @param {string} job whose views are docked
 * @param {string[][]} columns three, of views
 */
export const dockViews = async (job, columns) => {
  const { commands, shell } = lab()
  await Promise.all(columns.flat().map((view) => commands.execute("workbench:open-view", { job, view })))
  const docked = panels()
  const [first, middle, last] = columns.map((column) => column.map((view) => docked.find((one) => one.view === view)))
  shell.add(middle[0], "main", { mode: "split-right", ref: window.notebook.id })
  shell.add(first[0], "main", { mode: "split-right", ref: window.notebook.id })
  shell.add(last[0], "main", { mode: "split-right", ref: middle[0].id })
  for (const column of [first, middle, last])
    for (const panel of column.slice(1)) shell.add(panel, "main", { mode: "split-bottom", ref: column[0].id })
  shell.activateById(window.notebook.id)
}

export const closePanels = () => panels().forEach((panel) => panel.close())
