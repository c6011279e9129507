/** BokehJS on a page that may hold several versions of it. */

/**
 * BokehJS of one version, and whether it and Panel's models are on the page.
 *
 * @param {string} wanted the version
 */
export const findBokeh = (wanted) => {
  const bokeh = () => (window.Bokeh?.version === wanted ? window.Bokeh : window.Bokeh?.versions?.get?.(wanted))
  return { bokeh, isPresent: () => bokeh()?.Panel !== undefined }
}

/**
 * Hides AMD's `define` from scripts, so that they put what they define on the page itself.
 *
 * @returns {() => void} shows it again
 */
export const hideDefine = () => {
  const hidden = window.define
  window.define = undefined
  return () => {
    window.define = hidden
  }
}

/**
 * Has Panel's comm manager send changes of some models only. It would send back every change of every model, also what
 * the kernel has just sent: a slider that follows would tune the job.
 *
 * @param {any} manager
 * @param {Set<string>} acted ids of the models that a person acts on; the view's script adds those of later cards
 */
export const sendOnly = (manager, acted) => {
  manager.acted = acted
  const send = manager._document_changed.bind(manager)
  manager._document_changed = (/** @type {any} */ event) => {
    for (const one of event.events ?? [event])
      if (one.sync && (one.kind === "MessageSent" || acted.has(one.model?.id))) send(one)
  }
}
