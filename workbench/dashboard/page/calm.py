"""What a plot of BokehJS does for every frame although nothing here needs it, and how it is kept from it.

BokehJS is made for plots that are looked at, selected and styled; ours change several times a second. Where a plot has
one of the inner parts that are named below, it is given a cheaper one of its own; other plots on the page stay as they
are, and a BokehJS that has no such part works as it always does.

- For each line and text it asks the page's styles for CSS variables (``--bk-...``), which are not set here.
- It writes a style sheet with the place of each renderer, mostly the one that is there; the browser then computes the
  styles of the page anew, again and again between the plots. The places of glyphs, which are drawn on the canvas, are
  of no use at all.
- It keeps each glyph six times, for selected, muted and other states, and computes all of them from new data.
"""

CALM = """
const same_for_all_states = (view) => {
  const glyph = view.glyph
  view.decimated_glyph = view.selection_glyph = view.nonselection_glyph = view.muted_glyph = glyph
  view.map_data = () => glyph.map_data()
  view.set_visuals = async () => {
    glyph.set_visuals(view.model.data_source, view.all_indices)
    glyph.after_visuals()
    await glyph.after_lazy_visuals()
  }
  view.set_data = async (changed) => {
    const source = view.model.data_source
    view.all_indices = view.model.view.indices
    await glyph.set_data(source, view.all_indices, changed)
    await view.set_visuals()
    view._update_masked_indices()
    view.decimated = view.all_indices
    view.plot_view.invalidate_dataranges = true
  }
}
const calm = (plot) => {
  for (const view of [plot, ...plot.computed_renderer_views ?? []]) {
    for (const visual of view.visuals ?? []) {
      if ("_get_css_value" in visual) visual._get_css_value = () => ""
    }
    const is_glyph = view.model.type === "GlyphRenderer" && view.hover_glyph == null
    if (is_glyph && "_update_masked_indices" in view) same_for_all_states(view)
    const sheet = view.position
    if (sheet?._update === undefined) continue
    const update = sheet._update.bind(sheet)
    let last = sheet.css
    sheet._update = is_glyph ? () => {} : (css) => { if (css !== last) update(last = css) }
  }
}
"""
"""JavaScript: ``calm(view)`` for the view of a plot."""
