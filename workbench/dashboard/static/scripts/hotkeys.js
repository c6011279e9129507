/**
 * Keys that press a button of a view: while the focus is in the view or on the panel in which it is docked, or the view is
 * all that there is on the page.
 */

import { isDockedIn } from "./stands.js"

const TYPED = "input, select, textarea, [contenteditable=true]"

/**
 * @param {Model} root
 * @param {[string, Model][]} keys a letter, and the button that it presses
 * @param {Context} context
 * @param {() => boolean} isOpen whether lecture mode is
 * @returns {() => void} ends the listening
 */
export const listenToKeys = (root, keys, context, isOpen) => {
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || root.document == null) return
    const [origin] = event.composedPath()
    const el = context.index.find_one(root)?.el
    const isAlone = document.body.dataset.jpThemeLight === undefined && origin === document.body
    if (el === undefined) return
    if (!(event.composedPath().includes(el) || isDockedIn(origin, el) || isAlone || isOpen())) return
    if (origin instanceof Element && origin.matches(TYPED)) return
    for (const [key, button] of keys) {
      const pressed = key === event.key.toLowerCase() ? context.index.find_one(button)?.el : undefined
      if (pressed === undefined || pressed.offsetParent === null) continue
      event.preventDefault()
      event.stopImmediatePropagation()
      pressed.shadowRoot?.querySelector("button")?.click()
    }
  }
  window.addEventListener("keydown", onKey, true)
  return () => window.removeEventListener("keydown", onKey, true)
}
