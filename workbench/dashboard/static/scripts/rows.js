/**
 * Changes the texts of a page so that a person who aims at a row hits it, while other rows come and go above it.
 *
 * - A row that can be chosen keeps its element. If only positions counted, the element of a row would become its
 *   neighbour's in the middle of a press, and the neighbour would be chosen.
 * - Rows do not move under a pointer that is pressed, or that moved a moment ago and so may be about to be: new rows
 *   wait. Once a person has chosen a row nothing waits, as they want to see the result.
 */

/**
 * @param {Node} node
 * @returns {string | undefined}
 */
const rowOf = (node) => (node instanceof HTMLTableRowElement ? node.dataset.choose : undefined)

/**
 * @param {ChildNode | null} was
 * @param {string} row
 * @returns {ChildNode | null}
 */
const sameRow = (was, row) => {
  while (was !== null && rowOf(was) !== row) was = was.nextSibling
  return was
}

/**
 * @param {ChildNode | null} was
 * @param {ChildNode | null} end
 */
const removeUntil = (was, end) => {
  while (was !== null && was !== end) {
    const next = was.nextSibling
    was.remove()
    was = next
  }
}

/**
 * @param {Element} old
 * @param {Element} fresh
 */
const takeAttributes = (old, fresh) => {
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value)
  if (old.attributes.length > fresh.attributes.length)
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name)
}

/**
 * Gives an element new content. Only what differs is touched: the browser keeps the layout of the rest of a table.
 *
 * @param {Node} old
 * @param {Node} fresh its children are used up
 */
export const become = (old, fresh) => {
  let was = old.firstChild
  let now = fresh.firstChild
  while (now !== null) {
    const next = now.nextSibling
    const row = rowOf(now)
    if (row !== undefined) {
      const kept = sameRow(was, row)
      if (kept !== null) {
        removeUntil(was, kept)
        was = kept
      }
    }
    if (was === null || rowOf(was) !== row) old.insertBefore(now, was)
    else if (was.nodeName !== now.nodeName) {
      old.replaceChild(now, was)
      was = now.nextSibling
    } else {
      if (was instanceof Text && now instanceof Text) {
        if (was.data !== now.data) was.data = now.data
      } else if (was instanceof Element && now instanceof Element) {
        takeAttributes(was, now)
        become(was, now)
      }
      was = was.nextSibling
    }
    now = next
  }
  removeUntil(was, null)
}

const AIM_MS = 800

/** @type {WeakMap<Element, {pressed: boolean, moved: number, chose: number}>} */
const aims = new WeakMap()

/**
 * Lets the rows of a place be chosen, by a click or by the key that presses their button.
 *
 * @param {Element} place
 * @param {Source | null} choice
 */
export const offer = (place, choice) => {
  if (choice === null || aims.has(place)) return
  const aim = { pressed: false, moved: -Infinity, chose: -Infinity }
  aims.set(place, aim)
  const release = () => {
    aim.pressed = false
  }
  place.addEventListener("pointerdown", (event) => {
    if (/** @type {PointerEvent} */ (event).button !== 0) return
    aim.pressed = true
    for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, release, { once: true })
  })
  place.addEventListener("pointermove", () => {
    aim.moved = performance.now()
  })
  place.addEventListener("pointerleave", () => {
    aim.moved = -Infinity
  })
  place.addEventListener("click", (event) => {
    for (const node of event.composedPath()) {
      const row = node instanceof HTMLElement ? node.dataset.choose : undefined
      if (row === undefined) continue
      aim.chose = performance.now()
      choice.data = { row: [row], times: [choice.get_column("times")[0] + 1] }
      return
    }
  })
}

/**
 * Whether a pointer is pressed in a place, or may be about to be.
 *
 * @param {Element} place
 */
export const isAimedAt = (place) => {
  const aim = aims.get(place)
  if (aim === undefined) return false
  const now = performance.now()
  return aim.pressed || (now - aim.moved < AIM_MS && now - aim.chose >= AIM_MS)
}
