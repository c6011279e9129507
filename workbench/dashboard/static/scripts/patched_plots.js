/**
 * Replaces inner parts of BokehJS that do for every frame what no plot of the dashboard needs.
 *
 * BokehJS is made for plots that are looked at, selected and styled; ours change several times a second. Where a plot
 * has one of the inner parts that are named below, it gets a cheaper one of its own; other plots on the page stay as
 * they are, and a BokehJS that has no such part works as it always does.
 *
 * - For each line and text it asks the page's styles for CSS variables (`--bk-...`), which are not set here.
 * - It writes a style sheet with the position of each renderer, mostly the one that is there; the browser then computes
 *   the styles of the page anew, again and again between the plots. The positions of glyphs, which are drawn on the
 *   canvas, are of no use at all.
 * - It keeps each glyph six times, for selected, muted and other states, and computes all of them from new data.
 * - A plot whose labels have become wider lays out the whole page, though its own size stays; and one that is hidden, whose
 *   size is 0, does so each time that it gets new data.
 * - For each label of an axis it asks for the size of the plot's type, so that the browser computes the page's styles.
 */

/** A plot may be of another size of type after so long, as in a lecture. */
const SAME_TYPE_MS = 1000

/** @param {any} plot the view of a plot */
const layOutAlone = (plot) => {
  if ("_compute_layout" in plot && "measure_layout" in plot)
    plot.compute_layout = () => {
      plot.measure_layout()
      plot.update_bbox()
      plot._compute_layout()
      plot.after_layout()
      plot._layout_computed = true
    }
  const layOut = plot._invalidate_layout_if_needed?.bind(plot)
  if (layOut !== undefined)
    plot._invalidate_layout_if_needed = () => {
      if (plot.is_displayed && !plot.model.hold_render) layOut()
    }
}

/** @param {any} plot the view of a plot */
const keepType = (plot) => {
  const kind = Object.getPrototypeOf(plot)
  if (!("base_font_size" in kind)) return
  /** @type {number | null} */
  let last = null
  let asked = -Infinity
  const get = () => {
    const now = performance.now()
    if (now - asked > SAME_TYPE_MS) [last, asked] = [Reflect.get(kind, "base_font_size", plot), now]
    return last
  }
  Object.defineProperty(plot, "base_font_size", { get, configurable: true })
}

/** @param {any} view of a GlyphRenderer */
const shareGlyph = (view) => {
  const glyph = view.glyph
  view.decimated_glyph = view.selection_glyph = view.nonselection_glyph = view.muted_glyph = glyph
  view.map_data = () => glyph.map_data()
  view.set_visuals = async () => {
    glyph.set_visuals(view.model.data_source, view.all_indices)
    glyph.after_visuals()
    await glyph.after_lazy_visuals()
  }
  view.set_data = async (/** @type {any} */ changed) => {
    const source = view.model.data_source
    view.all_indices = view.model.view.indices
    await glyph.set_data(source, view.all_indices, changed)
    await view.set_visuals()
    view._update_masked_indices()
    view.decimated = view.all_indices
    view.plot_view.invalidate_dataranges = true
  }
}

/** @param {any} plot the view of a plot */
export const patchPlot = (plot) => {
  layOutAlone(plot)
  keepType(plot)
  for (const view of [plot, ...(plot.computed_renderer_views ?? [])]) {
    for (const visual of view.visuals ?? []) {
      if ("_get_css_value" in visual) visual._get_css_value = () => ""
    }
    const isGlyph = view.model.type === "GlyphRenderer" && view.hover_glyph == null
    if (isGlyph && "_update_masked_indices" in view) shareGlyph(view)
    const sheet = view.position
    if (sheet?._update === undefined) continue
    const update = sheet._update.bind(sheet)
    let last = sheet.css
    sheet._update = isGlyph
      ? () => {}
      : (/** @type {string} */ css) => {
          if (css !== last) update((last = css))
        }
  }
}
