/** What lectures have in common: the one from a dashboard, and the one from a lesson. */

/** The window for which sizes are right: larger ones enlarge all that there is. */
export const WIDTH = 1000
export const HEIGHT = 560

/** Elements that take keys themselves. */
export const FIELDS = "input, select, textarea, [contenteditable=true]"
export const MOVED = "[role=slider], [role=tab]"

/**
 * Whether the focus is on the panel in which a view is docked: whoever clicks beside the controls of the view moves it there.
 *
 * @param {EventTarget | undefined} origin of a key
 * @param {Element} el of the view
 */
export const isDockedIn = (origin, el) => {
  let at = el
  for (let tree; (tree = at.getRootNode()) instanceof ShadowRoot; ) at = tree.host
  return origin instanceof Element && origin.matches(".wb-Dashboard-content") && origin.contains(at)
}

/**
 * @param {string} tag
 * @param {string} name of the class
 * @param {string} text
 */
export const made = (tag, name, text = "") => {
  const element = document.createElement(tag)
  element.className = name
  element.textContent = text
  return element
}

/**
 * A button of the bar.
 *
 * @param {string} label
 * @param {string} name for those who do not see it
 * @param {() => void} act
 */
export const go = (label, name, act) => {
  const button = /** @type {HTMLButtonElement} */ (made("button", "go", label))
  button.type = "button"
  button.title = name
  button.setAttribute("aria-label", name)
  button.addEventListener("click", act)
  return button
}
