"""Updates of rows on the page: a click reaches the row it aims at, even when rows are added above it.

- A row that can be chosen keeps its element. Where only places counted, the element of a row would become its
  neighbour's in the middle of a press, and the neighbour would be chosen.
- Rows do not move under a pointer that is pressed, or that moved a moment ago and so may be about to be: what is new
  waits. Once somebody has chosen a row nothing waits, as they want to see it.
"""

ROWS = """
const row_of = (node) => node.nodeName === "TR" ? node.dataset.choose : undefined
const same_row = (was, row) => {
  while (was !== null && row_of(was) !== row) was = was.nextSibling
  return was
}
const remove_until = (was, end) => {
  while (was !== end) {
    const next = was.nextSibling
    was.remove()
    was = next
  }
}
// Only what differs is touched: the browser keeps the layout of the rest of a table.
const become = (old, fresh) => {
  let was = old.firstChild, now = fresh.firstChild
  while (now !== null) {
    const next = now.nextSibling, row = row_of(now)
    if (row !== undefined) {
      const kept = same_row(was, row)
      if (kept !== null) {
        remove_until(was, kept)
        was = kept
      }
    }
    if (was === null || row_of(was) !== row) old.insertBefore(now, was)
    else if (was.nodeName !== now.nodeName) {
      old.replaceChild(now, was)
      was = now.nextSibling
    } else {
      if (was.nodeType === Node.TEXT_NODE) {
        if (was.data !== now.data) was.data = now.data
      } else {
        for (const {name, value} of now.attributes) if (was.getAttribute(name) !== value) was.setAttribute(name, value)
        if (was.attributes.length > now.attributes.length)
          for (const {name} of [...was.attributes]) if (!now.hasAttribute(name)) was.removeAttribute(name)
        become(was, now)
      }
      was = was.nextSibling
    }
    now = next
  }
  remove_until(was, null)
}
const AIM_MS = 800
const aims = new WeakMap()
// Rows that can be chosen tell so, by a click or by the key that presses their button.
const offer = (place, choice) => {
  if (choice === null || aims.has(place)) return
  const aim = {pressed: false, moved: -Infinity, chose: -Infinity}
  aims.set(place, aim)
  const release = () => { aim.pressed = false }
  place.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return
    aim.pressed = true
    for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, release, {once: true})
  })
  place.addEventListener("pointermove", () => { aim.moved = performance.now() })
  place.addEventListener("pointerleave", () => { aim.moved = -Infinity })
  place.addEventListener("click", (event) => {
    const row = event.composedPath().find((node) => node.dataset?.choose !== undefined)
    if (row === undefined) return
    aim.chose = performance.now()
    choice.data = {row: [row.dataset.choose], times: [choice.get_column("times")[0] + 1]}
  })
}
const is_aimed_at = (place) => {
  const aim = aims.get(place)
  if (aim === undefined) return false
  const now = performance.now()
  return aim.pressed || (now - aim.moved < AIM_MS && now - aim.chose >= AIM_MS)
}
"""
"""JavaScript: ``become(element, content)``, ``offer(element, choice)`` and ``is_aimed_at(element)``."""
