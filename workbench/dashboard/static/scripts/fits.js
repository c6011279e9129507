/**
 * Shortens the texts of the graph to the pixels that they have on the page: the kernel does not know how wide it is.
 *
 * In a view beside a notebook a box is half as wide as in a window of its own. What is shortened can be read in the hover.
 */

/** Pixels of a box beside its texts. */
const PAD = 20

/** @param {string} text such as "idle 95, busy 5, back-pr. 0 %": the greatest of the three */
const greatest = (text) => {
  const shares = text.replace(" %", "").split(", ")
  const share = (/** @type {string} */ one) => Number(one.slice(one.lastIndexOf(" ")))
  return `${shares.reduce((most, one) => (share(one) > share(most) ? one : most))} %`
}

/** @type {{[name: string]: (text: string) => string}} */
const SHORTER = {
  rates: (text) => text.replace(" rec/s", "/s"),
  shares: (text) => (text.endsWith(" %") ? greatest(text) : text),
}

/**
 * Pixels of the width of the drawing, of those in which its letters are measured: a lecture enlarges them like all lines,
 * those of the outline included, which is not drawn.
 *
 * @param {any} figure
 */
const pixelsOf = ({ inner_width, outline_line_width }) => inner_width / outline_line_width

/**
 * @param {string[]} texts of the boxes
 * @param {{figure: any, boxes: Source, name: string, letter: number}} args whose column they are, and the width of a letter
 */
export const fitBoxes = (texts, { figure, boxes, name, letter }) => {
  if (figure.properties.inner_width.is_unset) return texts
  const whole = pixelsOf(figure)
  const [left, right, beside] = ["left", "right", "parallelism"].map((each) => boxes.get_column(each))
  return texts.map((text, row) => {
    const room = (right[row] - left[row]) * whole - PAD - (name === "title" ? letter * (beside[row].length + 1) : 0)
    const most = Math.floor(room / letter)
    const said = [text, SHORTER[name]?.(text) ?? text].find((one) => one.length <= most)
    const [subtask] = text.match(/\[\d+\]$/) ?? [""]
    const begun = (SHORTER[name]?.(text) ?? text).slice(0, Math.max(3, most - 1 - subtask.length)).trimEnd()
    return said ?? `${begun}…${subtask}`
  })
}

/**
 * Leaves a word out that is wider than its edge: a part of it would say nothing.
 *
 * @param {string[]} texts of the edges
 * @param {{figure: any, edges: Source, letter: number}} args
 */
export const fitEdges = (texts, { figure, edges, letter }) => {
  if (figure.properties.inner_width.is_unset) return texts
  const whole = pixelsOf(figure)
  const [from, to] = ["x0", "x1"].map((each) => edges.get_column(each))
  return texts.map((text, row) => (text.length * letter <= (to[row] - from[row]) * whole ? text : ""))
}

/**
 * Fits the texts again when the drawing has another width or range.
 *
 * @param {{sources: Source[]}} args
 */
export const fitAgain = ({ sources }) => {
  for (const source of sources) source.change.emit()
}
