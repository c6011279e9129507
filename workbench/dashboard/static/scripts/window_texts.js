/** Places the texts of windows on the plane of event time, in the pixels that it has on the page. */

/** Pixels between the text of a window and the edges of the window and of the plot. */
const GAP = 3

/**
 * Where texts of windows begin, in pixels from the left of the plot, the first ones in preference to later ones: all of a
 * text is within the plot and over no other text; null for those that have no such place.
 *
 * @param {any} figure
 * @param {Source} windows columns `x`, `right`, `y` and `text`
 * @returns {(number | null)[]}
 */
const placed = (figure, windows) => {
  const { x_range, y_range, inner_width: width, inner_height: height } = figure
  const { major_label_text_font: font, major_label_text_font_size: size } = figure.below[0]
  const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"))
  pen.font = `${size} ${font}`
  const high = 1.35 * parseFloat(size)
  const [xs, rights, ys] = ["x", "right", "y"].map((name) => windows.get_column(name))
  const across = (/** @type {number} */ x) => ((x - x_range.start) / (x_range.end - x_range.start)) * width
  /** @type {[number, number, number][]} */
  const taken = []
  return windows.get_column("text").map((/** @type {string} */ text, /** @type {number} */ row) => {
    const long = pen.measureText(text).width
    const left = Math.max(GAP, Math.min(across(xs[row]) + GAP, width - GAP - long))
    const down = ((y_range.end - ys[row]) / (y_range.end - y_range.start)) * height
    const isSeen = across(xs[row]) < width && across(rights[row]) > 0 && down >= 0 && down + high <= height
    const isOver = taken.some(([from, to, at]) => left < to + GAP && from < left + long + GAP && Math.abs(at - down) < high)
    if (text === "" || !isSeen || isOver || long + 2 * GAP > width) return null
    taken.push([left, left + long, down])
    return left - across(xs[row])
  })
}

/**
 * @param {string[]} texts of windows
 * @param {{figure: any, windows: Source}} args
 */
export const chooseTexts = (texts, { figure, windows }) => {
  if (figure.properties.inner_width.is_unset) return texts.map(() => "")
  const places = placed(figure, windows)
  return texts.map((text, row) => (places[row] === null ? "" : text))
}

/**
 * @param {number[]} xs where windows begin
 * @param {{figure: any, windows: Source}} args
 * @returns {number[]} pixels from there to the text of each
 */
export const shiftTexts = (xs, { figure, windows }) =>
  figure.properties.inner_width.is_unset ? Array.from(xs, () => 0) : placed(figure, windows).map((shift) => shift ?? 0)
