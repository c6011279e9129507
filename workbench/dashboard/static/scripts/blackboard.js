/**
 * The stage of a lecture: one step of a lesson fills the window, in large type, above everything else on the page.
 *
 * The page asks the kernel for a step and shows what comes back. A live view is a widget of its own, in a slot.
 */

import { FIELDS, HEIGHT, MOVED, WIDTH, go, made } from "./stands.js"

const KEYS = "← → 1-9 · R again · C program · F full screen · + − · Esc"

const isDark = () => {
  const { jpThemeLight, vscodeThemeKind } = document.body.dataset
  if (jpThemeLight !== undefined) return jpThemeLight === "false"
  if (vscodeThemeKind !== undefined) return !vscodeThemeKind.includes("light")
  return window.matchMedia("(prefers-color-scheme: dark)").matches
}

/** @param {string} css of the stage */
export const renderWith =
  (css) =>
  /** @param {{model: any, el: HTMLElement}} widget */
  ({ model, el }) => {
    /** @type {[number, string, string][]} section, title and kind */
    const steps = model.get("steps")
    let at = model.get("first")
    let size = 1
    let isOpen = false
    let isWaiting = false
    let withProgram = false
    let letters = ""
    /** @type {Element | null} */
    let focused = null

    const stage = made("div", "")
    const shadow = stage.attachShadow({ mode: "open" })
    const styles = document.createElement("style")
    styles.textContent = css
    const bar = made("header", "bar")
    const title = made("h2", "title")
    const place = made("span", "place")
    const program = made("pre", "program")
    const board = made("main", "board")
    const live = made("div", "live")
    const caption = made("div", "caption")
    caption.setAttribute("aria-live", "polite")
    live.slot = "live"
    const slot = document.createElement("slot")
    slot.name = "live"
    shadow.append(styles, bar, program, board, slot, caption)
    stage.append(live)
    stage.setAttribute("popover", "manual")
    stage.setAttribute("data-lecture", "")
    stage.setAttribute("data-lm-suppress-shortcuts", "true")
    stage.tabIndex = -1

    const fit = () => {
      if (!isOpen) return
      const factor = Math.max(1, Math.min(window.innerWidth / WIDTH, window.innerHeight / HEIGHT)) * size
      stage.style.setProperty("--wb-type", String(factor))
      board.style.zoom = "1"
      const picture = Number(board.querySelector("svg")?.getAttribute("width")) || 0 // its letters shrink if it does
      const whole = picture > 0 ? Math.max(1.1 * factor, (board.clientWidth - 8) / picture) : Infinity
      for (let zoom = Math.min(2 * factor, whole); ; zoom *= 0.93) {
        board.style.zoom = String(zoom)
        if (zoom < 0.5 || (board.scrollHeight <= board.clientHeight + 1 && board.scrollWidth <= board.clientWidth + 1)) return
      }
    }

    const ask = (/** @type {number} */ next, more = { ask: "step" }) => {
      if (isWaiting) return
      const step = Math.max(0, Math.min(steps.length - 1, next))
      isWaiting = true
      stage.setAttribute("aria-busy", "true")
      title.textContent = steps[step][1]
      place.textContent = `${step + 1} / ${steps.length}`
      model.send({ step, ...more })
    }

    const show = async (/** @type {any} */ said) => {
      isWaiting = false
      stage.removeAttribute("aria-busy")
      if (said.step >= 0) at = said.step
      letters = said.letters
      board.innerHTML = said.board
      board.dataset.kind = steps[at][2]
      board.toggleAttribute("data-empty", said.board === "")
      caption.innerHTML = said.caption
      caption.toggleAttribute("data-empty", said.caption === "")
      program.textContent = said.program
      program.toggleAttribute("data-empty", said.program === "" || !(withProgram || steps[at][2] === "solves"))
      live.replaceChildren()
      live.toggleAttribute("data-empty", said.view === "")
      if (said.view !== "") {
        const child = await model.widget_manager.get_model(said.view)
        const view = await model.widget_manager.create_view(child)
        live.append(view.el)
      }
      fit()
    }
    model.on("msg:custom", show)

    const open = () => {
      if (isOpen) return
      isOpen = true
      focused = document.activeElement
      stage.classList.toggle("wb-dark", isDark())
      document.body.append(stage)
      stage.showPopover()
      stage.focus({ preventScroll: true })
      ask(at)
    }
    const leave = () => {
      if (!isOpen) return
      isOpen = false
      if (document.fullscreenElement !== null) void document.exitFullscreen()
      live.replaceChildren()
      stage.hidePopover()
      stage.remove()
      if (focused instanceof HTMLElement) focused.focus({ preventScroll: true })
    }
    const fill = () => {
      if (document.fullscreenElement !== null) void document.exitFullscreen()
      else void document.documentElement.requestFullscreen()
    }
    const raise = () => {
      if (!isOpen) return
      stage.hidePopover() // it was there before the page filled the screen, and would be behind it
      stage.showPopover()
      stage.focus({ preventScroll: true })
      fit()
    }
    const resize = (/** @type {number} */ factor) => {
      size = Math.max(0.5, Math.min(2, size * factor))
      fit()
    }
    const toggleProgram = () => {
      withProgram = !withProgram
      program.toggleAttribute("data-empty", program.textContent === "" || !withProgram)
      fit()
    }

    /** @type {{[key: string]: () => void}} */
    const acts = {
      ArrowRight: () => ask(at + 1), PageDown: () => ask(at + 1), " ": () => ask(at + 1), Enter: () => ask(at + 1),
      ArrowLeft: () => ask(at - 1), PageUp: () => ask(at - 1), Home: () => ask(0), End: () => ask(steps.length - 1),
      Escape: leave, l: leave, f: fill, c: toggleProgram, r: () => ask(at, { ask: "again" }),
      "+": () => resize(1.1), "-": () => resize(1 / 1.1),
    }
    const onKey = (/** @type {KeyboardEvent} */ event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return
      const path = event.composedPath()
      const [origin] = path
      const key = event.key.length === 1 ? event.key.toLowerCase() : event.key
      const types = origin instanceof Element && origin.matches(FIELDS)
      if (!isOpen) {
        if (key !== "l" || types || !path.includes(el)) return
        event.preventDefault()
        event.stopImmediatePropagation()
        open()
        return
      }
      const isMoved = origin instanceof Element && origin.matches(`${MOVED}, button`)
      if (types || (isMoved && (key.startsWith("Arrow") || key === " " || key === "Enter"))) return
      event.stopImmediatePropagation() // it would act on what is behind
      if (letters !== "" && letters.includes(key) && key.length === 1) {
        ask(at, /** @type {any} */ ({ ask: "answer", letter: key }))
      } else if (/^[1-9]$/.test(key)) {
        const first = steps.findIndex(([section]) => section === Number(key))
        if (first >= 0) ask(first)
      } else if (acts[key] !== undefined) {
        event.preventDefault()
        acts[key]()
      }
    }

    const controls = made("nav", "scenes")
    controls.append(
      go("‹", "Previous step", () => ask(at - 1)), place, go("›", "Next step", () => ask(at + 1)),
      go("✕", "Leave the lecture", leave),
    )
    bar.append(title, made("span", "job", model.get("lesson")), made("small", "keys", KEYS), controls)
    const card = made("div", "wb-lecture-card")
    card.setAttribute("data-lm-suppress-shortcuts", "true")
    card.tabIndex = -1
    card.style.cssText = "display: flex; gap: 12px; align-items: center; padding: 6px 2px; font-size: 13px"
    const begin = go("Lecture L", "Begin the lecture", open)
    begin.style.cssText = "font: inherit; padding: 3px 10px; cursor: pointer"
    card.append(begin, made("span", "", `${model.get("lesson")}: ${steps.length} steps, each with its live picture.`))
    el.append(card)

    window.addEventListener("keydown", onKey, true)
    window.addEventListener("resize", fit)
    document.addEventListener("fullscreenchange", raise)
    if (model.get("fresh")) {
      model.set("fresh", false)
      model.save_changes()
      open()
    }
    return () => {
      leave()
      window.removeEventListener("keydown", onKey, true)
      window.removeEventListener("resize", fit)
      document.removeEventListener("fullscreenchange", raise)
      model.off("msg:custom", show)
    }
  }
