/**
 * Lets records, barriers and watermarks move along the edges of the graph.
 *
 * The kernel tells how fast records pass each edge and how many one that is drawn stands for; when each of them sets out
 * is counted here from that rate. They are drawn as SVG above the plot and moved by the browser alone, so neither the
 * plot is painted again nor the kernel asked.
 */

const CROSSING_MS = 1400
const MOST = 12
/** @type {[number, number]} */
const SEEN = [0.06, 0.94]
/**
 * A label is wider than its mark: near the ends of an edge it would stand over a box.
 * @type {[number, number]}
 */
const BETWEEN = [0.28, 0.72]
const FADES = 0.06

/** Dashes that flow take so many steps for a dash and its gap: a browser paints each of them, and need not more. */
const FLOW_STEPS = 8
const DASH = 36
const FLOW_MS = 600
/** Pixels of a letter: a label that is wider than its edge would hide what the boxes say. */
const LETTER = 6.6
/** An edge that falls or rises by more pixels has its own numbers, and those of its neighbours, in a label's way. */
const LEVEL = 20
const NS = "http://www.w3.org/2000/svg"

/**
 * @typedef {object} Moving
 * @property {SVGSVGElement} svg
 * @property {Map<string, {owed: number, barrier: number, watermark: string, told: number, drawn: number}>} edges
 * @property {number} last
 */

/** @type {WeakMap<object, Moving>} */
const moving = (window.workbench_moving ??= new WeakMap())

/**
 * @param {SVGSVGElement} svg
 * @param {string} path
 * @param {string} kind
 * @param {string} text
 * @param {number} scale of the drawing, which is larger in a lecture
 * @param {number} delay
 * @param {() => void} done
 */
const send = (svg, path, kind, text, scale, delay, done) => {
  const shape = document.createElementNS(NS, kind === "record" ? "circle" : "rect")
  const sizes = kind === "record" ? { r: 6 } : { x: -2.5, y: -10, width: 5, height: 20, rx: 2 }
  for (const [name, value] of Object.entries(sizes)) shape.setAttribute(name, String(value * scale))
  move(svg, path, kind, shape, kind === "barrier", SEEN, delay).finally(done)
  if (!text) return
  const label = document.createElementNS(NS, "text")
  label.textContent = text
  label.setAttribute("y", String((kind === "barrier" ? -29 : -42) * scale))
  label.style.fontSize = `${11 * scale}px`
  label.setAttribute("text-anchor", "middle")
  move(svg, path, kind, label, false, BETWEEN, delay)
}

/**
 * @param {SVGSVGElement} svg
 * @param {string} path
 * @param {string} kind
 * @param {SVGElement} shape
 * @param {boolean} turns with the path
 * @param {[number, number]} shown from which share of the path on, and up to which
 * @param {number} delay
 */
const move = (svg, path, kind, shape, turns, [from, to], delay) => {
  const group = document.createElementNS(NS, "g")
  group.setAttribute("class", kind)
  group.style.offsetPath = `path("${path}")`
  group.style.offsetRotate = turns ? "auto" : "0deg"
  group.style.fillOpacity = group.style.strokeOpacity = "0"
  group.append(shape)
  svg.append(group)
  // Not `opacity`: a browser makes a layer of its own of each group whose opacity changes.
  const at = (/** @type {number} */ offset, /** @type {number} */ opacity) =>
    ({ offset, offsetDistance: `${100 * offset}%`, fillOpacity: opacity, strokeOpacity: opacity })
  const frames = [at(0, 0), at(from - FADES, 0), at(from, 1), at(to, 1), at(to + FADES, 0), at(1, 0)]
  return group.animate(frames, { duration: CROSSING_MS, delay }).finished.finally(() => group.remove())
}

/** @param {SVGSVGElement} svg */
const flow = (svg) => {
  const line = svg.insertBefore(document.createElementNS(NS, "path"), svg.firstChild)
  const timing = { duration: FLOW_MS, iterations: Infinity, easing: `steps(${FLOW_STEPS})` }
  line.animate([{ strokeDashoffset: 0 }, { strokeDashoffset: -DASH }], timing)
  return line
}

/**
 * @param {{figure: Model, edges: Source, moves: Source}} args
 * @param {{context: Context}} call
 */
export const moveRecords = ({ figure, edges, moves }, { context }) => {
  const view = /** @type {any} */ (context.index.find_one(figure))
  if (view?.frame?.x_scale === undefined || view.el.offsetParent === null || document.hidden) return
  if (!moving.has(view)) {
    const svg = document.createElementNS(NS, "svg")
    svg.setAttribute("class", "wb-moves")
    svg.setAttribute("aria-hidden", "true")
    view.el.shadowRoot.append(svg)
    moving.set(view, { svg, edges: new Map(), last: performance.now() })
  }
  const { svg, edges: known, ...state } = /** @type {Moving} */ (moving.get(view))
  const now = performance.now()
  const seconds = Math.min(1, (now - state.last) / 1000)
  if (seconds < 0.08) return
  Object.assign(/** @type {Moving} */ (moving.get(view)), { last: now })
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches
  const [host, canvas] = [view.el.getBoundingClientRect(), view.canvas_view.el.getBoundingClientRect()]
  const { x_scale: x, y_scale: y } = view.frame
  const at = (/** @type {number} */ px, /** @type {number} */ py) =>
    `${(x.compute(px) + canvas.x - host.x).toFixed(1)} ${(y.compute(py) + canvas.y - host.y).toFixed(1)}`
  const scale = Math.max(1, Math.abs(y.compute(1) - y.compute(0)))
  const column = (/** @type {Source} */ source, /** @type {string} */ name) => source.get_column(name)
  const ids = column(moves, "id")
  const places = column(edges, "id")
  const flows = []
  for (let row = 0; row < ids.length; row += 1) {
    const place = places.indexOf(ids[row])
    if (place < 0) continue
    const of = (/** @type {string} */ name) => column(edges, name)[place]
    const path = `M ${at(of("x0"), of("y0"))} C ${at(of("cx0"), of("cy0"))} ${at(of("cx1"), of("cy1"))} ${at(of("x1"), of("y1"))}`
    const across = Math.abs(x.compute(of("x1")) - x.compute(of("x0")))
    const isLevel = Math.abs(y.compute(of("y1")) - y.compute(of("y0"))) <= LEVEL * scale
    const [each, rate, barrier, watermark] = ["each", "rate", "barrier", "watermark"].map((name) => column(moves, name)[row])
    const edge = known.get(ids[row]) ?? { owed: 0, barrier, watermark, told: 0, drawn: 0 }
    known.set(ids[row], edge)
    if (still) continue
    const done = () => {
      edge.drawn -= 1
    }
    const go = (/** @type {string} */ kind, /** @type {string} */ text, /** @type {number} */ delay) => {
      edge.drawn += 1
      const told = isLevel && text.length * LETTER * scale <= across ? text : ""
      send(svg, path, kind, told, scale, delay, done)
    }
    if (column(moves, "flows")[row]) flows.push(path)
    else {
      edge.owed = Math.min(edge.owed + (rate / each) * seconds, MOST)
      for (let n = 0; edge.owed >= 1 && edge.drawn < MOST; n += 1, edge.owed -= 1) go("record", "", (n * 1000 * seconds) / 4)
    }
    if (barrier > edge.barrier) go("barrier", `▲${barrier}`, 0)
    edge.barrier = barrier
    if (watermark !== edge.watermark && now - edge.told > 2 * CROSSING_MS) {
      if (edge.watermark) go("watermark", `W ${watermark}`, 150)
      Object.assign(edge, { watermark, told: now })
    }
  }
  const lines = [...svg.querySelectorAll("path")]
  flows.forEach((path, place) => {
    const line = lines[place] ?? flow(svg)
    if (line.getAttribute("d") !== path) line.setAttribute("d", path)
  })
  for (const line of lines.slice(flows.length)) line.remove()
}
