/** How the ticks of axes and the values of sliders are written. Each function stands alone: a formatter gets its text. */

/** @param {number} tick */
export const shortNumber = (tick) => {
  const size = Math.abs(tick)
  const short = (/** @type {number} */ value) => String(Number(value.toPrecision(3)))
  return size >= 1e9 ? `${short(tick / 1e9)}G` : size >= 1e6 ? `${short(tick / 1e6)}M` : size >= 1e3 ? `${short(tick / 1e3)}k` : short(tick)
}

/** @param {number} tick in milliseconds */
export const shortMilliseconds = (tick) =>
  tick >= 60_000 ? `${tick / 60_000} min` : tick >= 1000 ? `${tick / 1000} s` : `${Number(tick.toPrecision(3))} ms`

/** @param {number} tick in seconds */
export const shortSeconds = (tick) => {
  const short = (/** @type {number} */ value) => Number(value.toFixed(1))
  return tick >= 86_400 ? `${short(tick / 86_400)} d` : tick >= 3600 ? `${short(tick / 3600)} h` : tick >= 60 ? `${short(tick / 60)} min` : `${tick} s`
}

/** @param {number} tick in bytes */
export const shortBytes = (tick) =>
  tick >= 1e9 ? `${tick / 1e9} GB` : tick >= 1e6 ? `${tick / 1e6} MB` : tick >= 1e3 ? `${tick / 1e3} kB` : `${tick} B`

/** @param {number} tick in seconds since 1970 */
export const instant = (tick) => new Date(tick * 1000).toISOString().slice(0, 16).replace("T", " ")

/**
 * @param {number} tick the place of a word, or between two
 * @param {{words: string[]}} args
 */
export const wordAt = (tick, { words }) => words[Math.round(tick)]
