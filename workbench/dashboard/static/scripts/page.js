/** What a page does while it shows a view: writes texts, follows the theme, answers the kernel's pulse. */

import { watchMarbles } from "./glide.js"
import { listenToKeys } from "./hotkeys.js"
import { lectureOf } from "./lecture.js"
import { patchPlot } from "./patched_plots.js"
import { become, isAimedAt, offer } from "./rows.js"
import { watchStage } from "./stage.js"

const SILENT_MS = 6000

/** A page whose clock has gone on by so much between two looks at it was asleep, and the kernel may have given it up. */
const ASLEEP_MS = 60000

/** With these statuses the kernel ends, and everything that ran in it. */
const ENDS = ["restarting", "autorestarting", "terminating", "dead"]

const isDark = () => {
  const { jpThemeLight: light, vscodeThemeKind: kind } = document.body.dataset
  if (kind !== undefined) return !kind.endsWith("light")
  return light === undefined ? window.matchMedia("(prefers-color-scheme: dark)").matches : light === "false"
}

/**
 * @param {ParentNode} root
 * @returns {HTMLElement[]} all elements, those of the shadow trees included
 */
const within = (root) =>
  [...root.querySelectorAll("*")].flatMap((one) =>
    one.shadowRoot === null ? [/** @type {HTMLElement} */ (one)] : [/** @type {HTMLElement} */ (one), ...within(one.shadowRoot)]
  )

/**
 * A plot takes no key, so the tab key does not stop at it; a button beside it gets its role and its name.
 *
 * @param {View} plot
 */
const nameStops = (plot) => {
  for (const one of within(/** @type {ShadowRoot} */ (plot.el.shadowRoot))) {
    if (one.classList.contains("bk-events")) one.tabIndex = -1
    else if (one.tabIndex === 0 && (one.title || one.classList.contains("bk-tool-overflow"))) {
      one.setAttribute("role", "button")
      one.setAttribute("aria-label", one.title || "More tools")
    }
  }
}

/**
 * Runs when the document is ready.
 *
 * @param {object} args
 * @param {Model} args.root of the view
 * @param {Source} args.pulse column `beat` counts frames, `live` is 1 while more are to come
 * @param {Source} args.echo gets the beat whose frame was painted, and how long painting took
 * @param {Source} args.seen gets the names of the parts that are on the screen
 * @param {Source} args.texts the HTML of each piece, in a column of its own
 * @param {[string, Model, Source | null][]} args.pieces the column, the Div, and what hears of chosen rows
 * @param {Model[]} args.sliders
 * @param {[Model, string, string, string][]} args.painted a property of a model, in light and in dark
 * @param {[string, Model, Model[]][]} args.cards the name of each part, its card, and its plots
 * @param {[Buttons, Model, Source, string[], string] | null} args.stage what chooses between the cards
 * @param {number} args.answer_ms the page answers the kernel no more often
 * @param {[string, string, string[], string[]][]} args.scenes of lecture mode: name, title, views, and controls
 * @param {Source} args.chosen gets the name of the scene that is shown
 * @param {Source} args.said columns `state` and `news`, HTML
 * @param {Source} args.captions columns `scene` and `caption`, HTML
 * @param {string} args.job
 * @param {[string, Model][]} args.keys a letter, and the button that it presses
 * @param {Model[]} args.asides what lecture mode leaves out
 * @param {[string, string][]} args.contrast the colours that are stronger in lecture mode
 * @param {{context: Context}} call
 */
export const watchPage = (
  { root, pulse, echo, seen, texts, pieces, sliders, painted, cards, stage, answer_ms, keys, contrast, asides, ...scenes },
  { context }
) => {
  /** @type {boolean | null} */
  let dark = null
  let quiet = false
  let ended = false
  let heard = Date.now()
  const isLive = () => pulse.get_column("live")[0] === 1
  const classes = () => {
    const states = { "wb-dark": dark, "wb-quiet": quiet, "wb-ended": ended }
    const css_classes = ["wb-root", ...Object.entries(states).flatMap(([name, holds]) => (holds ? [name] : []))]
    root.setv({ css_classes }, { sync: false })
  }
  const kernel = window.PyViz?.kernels?.[root.id]
  const watchKernel = (/** @type {any} */ _kernel, /** @type {string} */ status) => {
    if (!isLive() || !ENDS.includes(status)) return
    quiet = ended = true
    classes()
  }
  kernel?.statusChanged?.connect(watchKernel)
  const stronger = new Map(contrast)
  const lecture = lectureOf({ root, cards, asides, ...scenes }, context, () => follow(true))
  const endKeys = listenToKeys(root, keys, context, lecture.isOpen)
  const follow = (again = false) => {
    if (isDark() === dark && !again) return
    dark = isDark()
    for (const [model, attribute, inLight, inDark] of painted) {
      const usual = dark ? inDark : inLight
      model.setv({ [attribute]: lecture.isOpen() ? (stronger.get(usual) ?? usual) : usual }, { sync: false })
    }
    classes()
  }

  // Parts that are not on the screen are not painted, and the kernel is told: it does not send what is new in them.
  /** @type {Set<string>} */
  const inSight = new Set()
  /** @type {string | null} */
  let told = null
  const tell = () => {
    const part = document.hidden ? [] : [...inSight].sort()
    if (root.document == null || String(part) === told) return
    told = String(part)
    for (const [name, , plots] of cards)
      for (const plot of plots) plot.setv({ hold_render: !part.includes(name) }, { sync: false })
    seen.data = { part }
  }
  /** @type {Map<Element, string>} */
  const named = new Map()
  const sight = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const name = /** @type {string} */ (named.get(target))
        if (isIntersecting) inSight.add(name)
        else inSight.delete(name)
      }
      tell()
    },
    { rootMargin: "150px" }
  )

  /** @type {Set<Model>} */
  const known = new Set()
  /** @type {View[]} */
  const drawn = []
  const knowNewViews = () => {
    for (const [name, card, plots] of cards) {
      for (const model of [card, ...plots]) {
        const view = known.has(model) ? null : context.index.find_one(model)
        if (view == null) continue
        known.add(model)
        if (model !== card) {
          patchPlot(view)
          nameStops(view)
          drawn.push(view)
        } else {
          named.set(view.el, name)
          sight.observe(view.el)
        }
      }
    }
  }
  // A plot that was measured in the moment of a change of the theme, in which the page has no layout, takes itself for
  // hidden; as its size is the same before and after, nothing tells it that it is not.
  const uncover = () => {
    for (const view of drawn) if (!view.is_displayed && view.el.offsetParent !== null) view.after_resize()
  }

  /** @type {Map<string, View | null>} */
  const views = new Map()
  /** @type {Map<string, string>} */
  const written = new Map()
  const draft = document.createElement("template")
  /** @type {[Source, string, Model, Source | null][]} */
  const allPieces = []
  const write = () => {
    for (const [source, name, div, choice] of allPieces) {
      const text = source.get_column(name)[0]
      if (written.get(name) === text) continue
      if (!views.has(name)) views.set(name, context.index.find_one(div))
      const view = views.get(name)
      if (view?.markup_el == null) {
        views.delete(name)
        continue
      }
      offer(view.el, choice)
      if (isAimedAt(view.el)) continue
      draft.innerHTML = text
      const move = watchMarbles(view.markup_el)
      become(view.markup_el, draft.content)
      move()
      written.set(name, text)
    }
  }
  // Texts are written once a frame and after the plots were painted, so that these find nothing to lay out anew.
  let due = false
  const writeSoon = () => {
    if (due) return
    due = true
    queueMicrotask(() =>
      requestAnimationFrame(() => {
        due = false
        write()
      })
    )
  }
  const addPieces = (/** @type {Source} */ source, /** @type {[string, Model, Source | null][]} */ more) => {
    for (const [name, div, choice] of more) allPieces.push([source, name, div, choice])
    source.properties.data.change.connect(writeSoon)
    source.patching.connect(writeSoon)
  }

  // A card that is filled after the page has shown it comes with a supplement to the arguments of this script.
  /** @type {Set<Model>} */
  const supplemented = new Set()
  const supplement = () => {
    for (const tag of root.tags) {
      if (tag.name !== "supplement" || supplemented.has(tag)) continue
      supplemented.add(tag)
      const more = Object.fromEntries(tag.args instanceof Map ? tag.args : Object.entries(tag.args))
      for (const line of root.document.roots()) for (const id of more.acted) line.acted?.add(id)
      addPieces(more.texts, more.pieces)
      sliders.push(...more.sliders)
      painted.push(...more.painted)
      asides.push(...more.asides)
      keys.push(...more.keys)
      const isHeld = (/** @type {string} */ name) => told !== null && !told.split(",").includes(name)
      for (const [name, card, plots] of more.cards) {
        cards.find(([known]) => known === name)?.[2].push(...plots)
        for (const plot of plots) plot.setv({ hold_render: isHeld(name) }, { sync: false })
        lecture.watch(plots)
        fillIn(card)
      }
      follow(true)
    }
  }
  const isBuilt = (/** @type {Model} */ model) =>
    context.index.find_one(model) != null && (model.children ?? []).every(isBuilt)
  /** BokehJS makes the views of new models in its own time. */
  const fillIn = (/** @type {Model} */ card) => {
    if (root.document == null) return
    if (!isBuilt(card)) {
      setTimeout(fillIn, 20, card)
      return
    }
    knowNewViews()
    nameHandles()
    write()
    lecture.renew(card)
  }
  /** @type {Set<Element>} */
  const spoken = new Set()
  /** @type {Map<Model, Element>} */
  const handles = new Map()
  // The handle is what gets the focus, and BokehJS names only what is around it.
  const nameHandles = () => {
    for (const slider of sliders) {
      if (handles.get(slider)?.isConnected) continue // to find a view takes a search through all of them
      const el = context.index.find_one(slider)?.el
      const handle = el?.shadowRoot?.querySelector(".noUi-handle")
      if (handle == null) continue
      handle.setAttribute("aria-label", el?.getAttribute("aria-label") ?? "")
      handles.set(slider, handle)
      const target = /** @type {any} */ (el?.shadowRoot?.querySelector(".noUi-target"))
      if (target == null || spoken.has(target) || !slider.format?.doFormat) continue
      spoken.add(target)
      // noUiSlider writes the bare number at each update, and then calls this.
      target.noUiSlider.on("update.words", (/** @type {any} */ _values, /** @type {number} */ _handle, /** @type {number[]} */ plain) =>
        handle.setAttribute("aria-valuetext", slider.format.doFormat([plain[0]], { loc: 0 })[0])
      )
    }
  }

  let answeredAt = -Infinity
  let paintedMs = 0
  let frames = 0
  const listen = () => {
    heard = Date.now()
    knowNewViews()
    uncover()
    lecture.begin()
    const beat = [...pulse.get_column("beat")]
    const begin = performance.now()
    let answered = false
    const answer = () => {
      if (answered || root.document == null) return
      answered = true
      const end = performance.now()
      const sync = end - answeredAt >= answer_ms
      paintedMs += end - begin
      frames += 1
      echo.setv({ data: { beat, painting_ms: [paintedMs / frames] } }, { sync })
      if (sync) [answeredAt, paintedMs, frames] = [end, 0, 0]
    }
    queueMicrotask(() => requestAnimationFrame(() => setTimeout(answer, 0)))
    setTimeout(answer, 500)
  }

  follow()
  watchStage(stage, cards)
  const turn = () => follow()
  const scheme = window.matchMedia("(prefers-color-scheme: dark)")
  scheme.addEventListener("change", turn)
  const theme = new MutationObserver(turn)
  theme.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"] })
  document.addEventListener("visibilitychange", tell)
  pulse.properties.data.change.connect(listen)
  addPieces(texts, pieces)
  supplement()
  root.properties.tags.change.connect(supplement)
  write()
  let looked = Date.now()
  const timer = setInterval(() => {
    if (root.document == null) {
      clearInterval(timer)
      kernel?.statusChanged?.disconnect(watchKernel)
      theme.disconnect()
      scheme.removeEventListener("change", turn)
      lecture.close()
      endKeys()
      sight.disconnect()
      document.removeEventListener("visibilitychange", tell)
      return
    }
    if (Date.now() - looked > ASLEEP_MS) {
      told = null
      tell()
    }
    looked = Date.now()
    if (!isLive()) lecture.begin() // there is no pulse to wait for
    const silent = ended || (isLive() && Date.now() - heard > SILENT_MS)
    if (silent !== quiet) {
      quiet = silent
      classes()
    }
    nameHandles()
    writeSoon() // what a pointer has kept waiting
  }, 1000)
}
