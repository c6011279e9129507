/**
 * Lets the records of the stepper glide from where they were to where they are, so that the eye can follow them.
 *
 * A picture tells of each marble who it is (`data-glides`) and from where to where its channel goes (`data-way`). One
 * that is new comes from the sender's end of the channel, and one that is gone leaves by the receiver's end.
 */

const GLIDE_MS = 320

/** @param {Element} marble */
const placeOf = (marble) => (marble.getAttribute("transform") ?? "").match(/-?[\d.]+/g)?.map(Number) ?? [0, 0]

/** @param {Element} marble */
const wayOf = (marble) => (marble.getAttribute("data-way") ?? "0 0 0 0").split(" ").map(Number)

/**
 * @param {Element} marble
 * @param {number[]} from
 * @param {number[]} to
 * @param {number[]} [opacity] at both ends
 */
const glide = (marble, from, to, opacity = [1, 1]) =>
  marble.animate(
    [from, to].map(([x, y], end) => ({ transform: `translate(${x}px, ${y}px)`, opacity: opacity[end] })),
    { duration: GLIDE_MS, easing: "ease-in-out" }
  )

/**
 * Looks where the marbles of a place are before it is written anew.
 *
 * @param {Element} place
 * @returns {() => void} to be called when it has been written
 */
export const watchMarbles = (place) => {
  const all = () => [...place.querySelectorAll("[data-glides]")]
  const before = new Map(all().map((one) => [one.getAttribute("data-glides"), /** @type {Element} */ (one.cloneNode(true))]))
  const had = place.querySelector("svg")
  return () => {
    const svg = place.querySelector("svg")
    if (had === null || svg === null || matchMedia("(prefers-reduced-motion: reduce)").matches) return
    for (const marble of all()) {
      const name = marble.getAttribute("data-glides")
      const old = before.get(name)
      before.delete(name)
      const [to, way] = [placeOf(marble), wayOf(marble)]
      const from = old === undefined ? way.slice(0, 2) : placeOf(old)
      if (String(from) !== String(to)) glide(marble, from, to, old === undefined ? [0.2, 1] : [1, 1])
    }
    for (const gone of before.values()) {
      gone.removeAttribute("data-glides")
      gone.setAttribute("aria-hidden", "true")
      svg.append(gone)
      glide(gone, placeOf(gone), wayOf(gone).slice(2), [1, 0]).finished.finally(() => gone.remove())
    }
  }
}
