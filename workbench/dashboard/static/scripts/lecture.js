/**
 * Lecture mode: one scene fills the window, in large type, above everything else on the page.
 *
 * The cards of the dashboard stay what they are: those of the scene are shown, the others hidden. HTML is enlarged by
 * the style `zoom`. Plots measure themselves in pixels of the window, which that would spoil, so their heights, letters
 * and lines grow instead and stay sharp.
 */

import { FIELDS, HEIGHT, MOVED, WIDTH, go, isDockedIn, made } from "./stands.js"

const KEYS = "← → scenes · F full screen · + − size · Esc leaves"

/** Letters of charts grow by so much more than lines: on a page of its own they are the smallest ones. */
const LETTERS = 1.2

/** A drawing that is as wide as its place may be so much higher than its letters ask for. */
const TALLER = 1.5

/** A scene without plots is enlarged by so much more, where it leaves room. */
const WORDS_MOST = 1.6

const GROWS = /(font_size|line_width|^size|^hatch_weight|^hatch_scale)$/

/** Whether a property of a model grows: sizes, and what gives the distances between texts. */
const isSize = (/** @type {any} */ model, /** @type {string} */ name) =>
  GROWS.test(name) || (model.type === "LinearInterpolator" && name === "y")

/**
 * A size as a property has it: a number, such as 2, or pixels, such as "11px", alone, as the value of a glyph, or several.
 *
 * @param {any} size
 * @param {number} factor
 * @returns {any}
 */
const grown = (size, factor) => {
  if (typeof size === "number") return size * factor
  if (Array.isArray(size)) return size.map((one) => grown(one, factor))
  if (typeof size === "string" && /^[\d.]+px$/.test(size)) return `${(parseFloat(size) * factor).toFixed(2)}px`
  if (size !== null && typeof size === "object" && "value" in size) return { ...size, value: grown(size.value, factor) }
  return size
}

/**
 * @param {object} args
 * @param {any} args.root of the view
 * @param {[string, any, any[]][]} args.cards the name of each part, its card, and its plots
 * @param {[string, string, string[], string[]][]} args.scenes name, title, views, and groups of controls
 * @param {Source} args.chosen gets the name of the scene that is shown
 * @param {Source} args.said columns `state` and `news`, HTML
 * @param {Source} args.captions columns `scene` and `caption`, HTML: of all scenes, none before the kernel has written them
 * @param {string} args.job
 * @param {any[]} args.asides what is left out
 * @param {Context} context
 * @param {() => void} repaint gives the plots their colours
 */
export const lectureOf = ({ root, cards, scenes, chosen, said, captions, job, asides }, context, repaint) => {
  let at = -1
  let size = 1
  let isFitting = false
  /** @type {Map<any, {[property: string]: any}>} what plots and their parts were like before */
  const usual = new Map()
  /** @type {Map<any, {height: number, min_width: number | null}>} the size that a plot has got here */
  const fitted = new Map()
  /** @type {Map<HTMLElement, string>} what scrolls, and the height from which on it did so before */
  const rooms = new Map()
  /** @type {Map<any, boolean>} what is left out, and whether it was visible before */
  const hidden = new Map()
  /** @type {Set<any>} the cards of the scene */
  let shown = new Set()
  let isArranging = false
  let factor = 1
  /** @type {Element | null} */
  let focused = null

  const bar = made("header", "bar")
  const title = made("h2", "title")
  const state = made("span", "state")
  const place = made("span", "place")
  const caption = made("p", "caption")
  const news = made("div", "happens")
  for (const one of [caption, news]) one.setAttribute("aria-live", "polite")
  const elementOf = (/** @type {any} */ model) => context.index.find_one(model)?.el
  const isOpen = () => at >= 0
  const isStage = (/** @type {any} */ model) => model.css_classes.includes("wb-stage")
  /** @returns {any[]} what the page is made of: its parts, and the cards on the stage */
  const laidOut = () => root.children[0].children.flatMap((/** @type {any} */ one) => (isStage(one) ? [one, ...one.children] : [one]))

  const captionOf = (/** @type {string} */ scene) =>
    captions.get_column("caption")[captions.get_column("scene").indexOf(scene)] ?? ""
  const heightOfWords = () => caption.offsetHeight + news.offsetHeight
  /** The height of what is shown and is no plot, as it was when the plots were stretched. */
  let taken = 0
  const tell = () => {
    const before = heightOfWords()
    caption.innerHTML = isOpen() ? captionOf(scenes[at][0]) : ""
    state.innerHTML = said.get_column("state")[0]
    news.innerHTML = said.get_column("news")[0]
    if (isOpen() && (heightOfWords() !== before || Math.abs(heightBesidePlots() - taken) > 3)) fitSoon()
  }
  const choose = (/** @type {string} */ scene) => {
    if (chosen.get_column("scene")[0] !== scene) chosen.data = { scene: [scene] }
  }

  // Sizes -------------------------------------------------------------------------------------------------------

  const enlarge = (/** @type {any} */ model, /** @type {number} */ factor, letters = 1) => {
    const before = usual.get(model) ?? {}
    usual.set(model, before)
    /** @type {{[property: string]: any}} */
    const values = {}
    for (const name of Object.keys(model.properties)) {
      if (!isSize(model, name)) continue
      before[name] ??= model[name]
      values[name] = grown(before[name], name.endsWith("font_size") || name === "y" ? factor * letters : factor)
    }
    model.setv(values, { sync: false })
  }

  /**
   * A drawing is laid out for a least width, so all of it grows alike, and its boxes into the height that is left; of a chart
   * what is written and drawn.
   *
   * @param {any} plot
   * @param {number} factor
   * @param {number | null} height in pixels; null: as high as the factor makes it
   */
  const fitPlot = (plot, factor, height) => {
    const before = usual.get(plot) ?? {}
    usual.set(plot, before)
    const given = fitted.get(plot)
    if (plot.height !== given?.height) before.height = plot.height
    if (plot.min_width !== given?.min_width) before.min_width = plot.min_width
    const isDrawing = before.min_width !== null
    const widest = (window.innerWidth - 60) / (before.min_width ?? 1)
    const most = isDrawing ? Math.max(1, Math.min(widest, height === null ? factor : height / before.height)) : factor
    const times = Math.min(most, 1.8 * factor)
    for (const part of plot.references()) if (part.type !== "ColumnDataSource") enlarge(part, times, isDrawing ? 1 : LETTERS)
    const least = before.height * times
    const values = {
      height: Math.floor(isDrawing ? Math.max(least, Math.min(height ?? least, TALLER * least)) : (height ?? least)),
      min_width: isDrawing ? Math.floor(before.min_width * times) : null,
    }
    fitted.set(plot, values)
    plot.setv(values, { sync: false })
  }

  /** The cards of the scene, its controls among them. */
  const present = () => {
    const [, , views, controls] = scenes[at]
    return cards.filter(([name]) => views.includes(name) || (name === "controls" && controls.length > 0))
  }

  /** Enlarges all but the plots. */
  const zoom = (/** @type {number} */ factor) => {
    for (const [, card] of present()) {
      for (const model of card.references()) {
        if (!("stylesheets" in model.properties) || "renderers" in model.properties) continue
        const el = elementOf(model)
        if (el === undefined) continue
        if (!("children" in model.properties)) el.style.zoom = String(factor)
        else if (el.style.getPropertyValue("--wb-room")) {
          if (!rooms.has(el)) rooms.set(el, el.style.getPropertyValue("--wb-room"))
          const isPlot = model.children.some((/** @type {any} */ one) => "renderers" in one.properties)
          el.style.setProperty("--wb-room", isPlot ? "100vh" : `${factor * parseFloat(rooms.get(el) ?? "0")}px`)
        }
      }
    }
  }

  const fit = () => {
    if (!isOpen()) return
    isFitting = true
    factor = Math.max(1, Math.min(window.innerWidth / WIDTH, window.innerHeight / HEIGHT)) * size
    elementOf(root)?.style.setProperty("--wb-type", String(factor))
    for (const [, , plots] of present()) {
      for (const { toolbar } of plots) if (toolbar.visible) hide(toolbar, true)
      for (const plot of plots) fitPlot(plot, factor, null)
    }
    zoom(factor)
    isFitting = false
  }

  const plotsInSight = () => present().flatMap(([, , plots]) => plots).filter((plot) => elementOf(plot)?.offsetParent != null)
  /** Where the last of the cards ends. */
  const endOfCards = () => {
    const shown = [...(elementOf(root.children[0])?.shadowRoot?.children ?? [])].map((one) => one.getBoundingClientRect())
    return Math.max(...shown.filter((one) => one.height > 0).map((one) => one.bottom))
  }
  const heightBesidePlots = () => plotsInSight().reduce((rest, plot) => rest - plot.height, endOfCards())

  /** Plots take the height that is left, or give up what is missing; those beside each other all of it. Without plots, what
   * is written takes it. */
  const stretch = () => {
    if (!isOpen()) return
    const grid = elementOf(root.children[0])
    const plots = plotsInSight()
    const end = endOfCards()
    if (grid === undefined || !Number.isFinite(end)) return
    const { bottom } = grid.getBoundingClientRect()
    const spare = bottom - end - 2
    const rows = new Set(plots.map((plot) => Math.round(elementOf(plot)?.getBoundingClientRect().top ?? 0))).size
    isFitting = true
    for (const plot of plots) fitPlot(plot, factor, Math.max(90 * factor, plot.height + spare / rows))
    isFitting = false
    for (let times = plots.length > 0 ? 1 : WORDS_MOST; times > 1; times -= 0.1) {
      zoom(times * factor)
      if (endOfCards() <= bottom) break
      zoom(factor)
    }
    const measure = () => {
      if (isOpen()) taken = heightBesidePlots()
    }
    requestAnimationFrame(() => requestAnimationFrame(measure))
  }
  const fitSoon = () => {
    fit()
    requestAnimationFrame(() => requestAnimationFrame(stretch))
  }

  const restore = () => {
    isFitting = true
    for (const [model, before] of usual) model.setv(before, { sync: false })
    for (const [model, visible] of hidden) {
      model.setv({ visible }, { sync: false })
      elementOf(model)?.removeAttribute("data-away")
    }
    for (const [el, room] of rooms) el.style.setProperty("--wb-room", room)
    for (const [, card] of cards)
      for (const model of card.references())
        if ("stylesheets" in model.properties)
          for (const name of ["zoom", "flex", "max-width", "min-width"]) elementOf(model)?.style.removeProperty(name)
    for (const known of [usual, fitted, rooms, hidden]) known.clear()
    isFitting = false
  }

  // Scenes ------------------------------------------------------------------------------------------------------

  const hide = (/** @type {any} */ model, /** @type {boolean} */ isHidden) => {
    if (!hidden.has(model)) hidden.set(model, model.visible)
    model.setv({ visible: !isHidden && hidden.get(model) }, { sync: false })
    elementOf(model)?.toggleAttribute("data-away", isHidden) // for styles that are stronger than Bokeh's
  }

  /**
   * Shows the groups of controls that are named; whether anything of the model is shown.
   *
   * @param {any} model
   * @param {string[]} named
   * @returns {boolean}
   */
  const keepGroups = (model, named) => {
    const group = model.css_classes.find((/** @type {string} */ one) => one.startsWith("wb-do-"))
    const kept = group === undefined ? (model.children ?? []).map((/** @type {any} */ one) => keepGroups(one, named)) : []
    const isKept = kept.includes(true) || named.includes(group?.slice("wb-do-".length))
    hide(model, !isKept)
    return isKept
  }

  const arrange = () => {
    const [, , views, named] = scenes[at]
    isArranging = true
    shown = new Set()
    for (const [name, card] of cards) {
      if (name === "controls") {
        if (keepGroups(card, named)) shown.add(card)
      } else if (views.includes(name)) {
        shown.add(card)
        for (const model of card.references())
          if (model.css_classes?.includes("wb-knob")) {
            elementOf(model)?.style.setProperty("flex", "0 1 60%")
            elementOf(model)?.style.setProperty("max-width", "none")
            elementOf(model)?.style.setProperty("min-width", "min(100%, calc(440px * var(--wb-type, 1)))")
            hide(model, ![...model.references()].some((one) => one.type === "Slider" && named.includes(one.name)))
          }
      }
    }
    for (const model of asides) hide(model, true)
    for (const card of shown) {
      if (!hidden.has(card)) hidden.set(card, card.visible) // the dashboard may not show it now
      card.setv({ visible: true }, { sync: false })
    }
    for (const model of laidOut()) {
      if (model.css_classes.includes("wb-silence") || model.type === "Slider") continue
      const isShown = shown.has(model) || (isStage(model) && model.children.some((/** @type {any} */ one) => shown.has(one)))
      elementOf(model)?.style.setProperty("display", isShown ? "" : "none", "important")
      elementOf(model)?.toggleAttribute("data-lecture", isStage(model))
    }
    isArranging = false
  }
  /** The dashboard shows other cards once a task has failed: it does so behind the lecture. */
  const keep = (/** @type {any} */ card) => {
    if (!isOpen() || isArranging) return
    hidden.set(card, card.visible)
    isArranging = true
    card.setv({ visible: shown.has(card) }, { sync: false })
    isArranging = false
  }

  const show = (/** @type {number} */ next) => {
    at = Math.max(0, Math.min(scenes.length - 1, next))
    title.textContent = scenes[at][1]
    place.textContent = `${at + 1} / ${scenes.length}`
    caption.innerHTML = captionOf(scenes[at][0])
    arrange()
    choose(scenes[at][0])
    fitSoon()
  }

  const raise = (/** @type {HTMLElement} */ el) => {
    if (el.matches(":popover-open")) el.hidePopover()
    el.showPopover()
    el.focus({ preventScroll: true })
  }

  const open = (/** @type {number} */ scene) => {
    const el = elementOf(root)
    if (el?.shadowRoot == null || scenes.length === 0) return
    if (!isOpen()) {
      focused = document.activeElement
      el.setAttribute("data-lecture", "")
      el.setAttribute("data-lm-suppress-shortcuts", "true") // keys are not to act on the notebook behind it
      el.setAttribute("popover", "manual")
      elementOf(root.children[0])?.setAttribute("data-lecture", "")
      el.shadowRoot.prepend(bar, news)
      el.shadowRoot.append(caption)
      raise(el)
    }
    show(scene)
    tell()
    repaint()
  }

  /** A click anywhere in the view gives it the focus, and with it the keys; the tab key stops at it. */
  const takeFocus = (/** @type {HTMLElement} */ el) => {
    el.tabIndex = 0
    el.setAttribute("role", "group")
    el.setAttribute("aria-label", `Dashboard of ${job}`)
  }

  const leave = () => {
    if (!isOpen()) return
    at = -1
    if (document.fullscreenElement !== null) void document.exitFullscreen()
    choose("")
    restore()
    for (const model of [root.children[0], ...laidOut()]) {
      elementOf(model)?.style.removeProperty("display")
      elementOf(model)?.removeAttribute("data-lecture")
    }
    for (const one of [bar, news, caption]) one.remove()
    const el = elementOf(root)
    if (el !== undefined) {
      if (el.matches(":popover-open")) el.hidePopover()
      for (const name of ["data-lecture", "data-lm-suppress-shortcuts", "popover"]) el.removeAttribute(name)
    }
    if (focused instanceof HTMLElement) focused.focus({ preventScroll: true })
    repaint()
  }

  // The popover was there before the page filled the screen, and would be behind it.
  const fill = () => {
    if (document.fullscreenElement !== null) void document.exitFullscreen()
    else void document.documentElement.requestFullscreen()
  }
  const refill = () => {
    const el = isOpen() ? elementOf(root) : undefined
    if (el !== undefined) raise(el)
    fitSoon()
  }

  const resize = (/** @type {number} */ factor) => {
    size = Math.max(0.5, Math.min(2, size * factor))
    fitSoon()
  }

  /** @type {{[key: string]: () => void}} */
  const acts = {
    ArrowRight: () => show(at + 1), PageDown: () => show(at + 1), ArrowLeft: () => show(at - 1),
    PageUp: () => show(at - 1), Home: () => show(0), End: () => show(scenes.length - 1),
    Escape: leave, l: leave, f: fill, "+": () => resize(1.1), "-": () => resize(1 / 1.1),
  }

  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || scenes.length === 0 || root.document == null) return
    const el = elementOf(root)
    if (el === undefined) return
    const path = event.composedPath()
    const [origin] = path
    const isInside = path.includes(el)
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key
    const take = () => {
      event.preventDefault()
      event.stopImmediatePropagation()
    }
    const types = origin instanceof Element && origin.matches(FIELDS)
    if (!isOpen()) {
      const isAlone = document.body.dataset.jpThemeLight === undefined && origin === document.body
      if (key !== "l" || types || !(isInside || isAlone || isDockedIn(origin, el))) return
      take()
      open(0)
      return
    }
    const isArrow = key.startsWith("Arrow") || ["Home", "End", "PageUp", "PageDown"].includes(key)
    if (isInside && (types || (isArrow && origin instanceof Element && origin.matches(MOVED)))) {
      if (key === "Escape" && types) {
        take()
        el.focus()
      }
      return
    }
    if (acts[key] !== undefined) {
      take()
      acts[key]()
    } else if (/^[1-9]$/.test(key) && Number(key) <= scenes.length) {
      take()
      show(Number(key) - 1)
    } else if (!isInside) event.stopImmediatePropagation() // it would act on what is behind
  }

  const onClick = (/** @type {MouseEvent} */ event) => {
    const el = elementOf(root)
    const path = event.composedPath()
    const pressed = path.some((one) => one instanceof HTMLElement && one.dataset.opens === "lecture")
    if (pressed && el !== undefined && path.includes(el)) open(0)
  }

  const controls = made("nav", "scenes")
  const back = go("‹", "Previous scene", () => show(at - 1))
  const forth = go("›", "Next scene", () => show(at + 1))
  controls.append(back, place, forth, go("✕", "Leave lecture mode", leave))
  bar.append(title, made("span", "job", job), state, made("small", "keys", KEYS), controls)

  window.addEventListener("keydown", onKey, true)
  window.addEventListener("resize", fitSoon)
  window.addEventListener("click", onClick)
  document.addEventListener("fullscreenchange", refill)
  for (const source of [said, captions]) source.properties.data.change.connect(tell)
  const watch = (/** @type {any[]} */ plots) => {
    for (const plot of plots)
      for (const property of [plot.properties.height, plot.properties.min_width])
        property.change.connect(() => {
          if (isOpen() && !isFitting) requestAnimationFrame(fitSoon) // the kernel has laid it out anew
        })
  }
  for (const [, card, plots] of cards) {
    watch(plots)
    card.properties.visible.change.connect(() => keep(card))
  }

  let hasBegun = false
  return {
    isOpen,
    watch,
    /** A card was filled. */
    renew: (/** @type {any} */ card) => {
      if (isOpen() && present().some(([, one]) => one === card)) show(at)
    },
    /** Once the kernel is heard: shows the scene that the page is to begin with. */
    begin: () => {
      const el = elementOf(root)
      if (hasBegun || !el?.isConnected) return
      hasBegun = true
      if (scenes.length > 0) {
        el.style.setProperty("--wb-lecture", "inline-block")
        takeFocus(el)
      }
      const first = scenes.findIndex(([name]) => name === chosen.get_column("scene")[0])
      if (first >= 0) open(first)
    },
    close: () => {
      leave()
      window.removeEventListener("keydown", onKey, true)
      window.removeEventListener("resize", fitSoon)
      window.removeEventListener("click", onClick)
      document.removeEventListener("fullscreenchange", refill)
    },
  }
}
