/** What models do on the page without the kernel. Each function stands alone: a callback gets its text. */

/**
 * Shows the pane of the pressed button; the button behind those of the panes shows all.
 *
 * @param {{panes: Model[]}} args
 * @param {{object: Model}} call
 */
export const showPane = ({ panes }, { object }) => {
  panes.forEach((pane, place) => {
    const visible = object.active === place || object.active === panes.length
    pane.setv({ visible }, { sync: false })
  })
}

/**
 * Takes what was typed when Enter is pressed: JupyterLab lets Enter reach the field as a key alone, and the browser's
 * event of a change does not follow it.
 *
 * @param {{field: Model}} args
 * @param {{object: Model}} call
 */
export const takeTyped = ({ field }, { object }) => {
  field.value = object.value
}

/**
 * Chooses a box by its id: by the time that the kernel hears of it, another box may be in its place.
 *
 * @param {{boxes: Source, choice: Source}} args
 * @param {{data: {source: Source}}} call
 */
export const chooseBox = ({ boxes, choice }, { data }) => {
  if (data.source !== boxes) return
  const [place] = boxes.selected.indices
  boxes.selected.indices = []
  if (place !== undefined)
    choice.data = { row: [boxes.get_column("id")[place]], times: [choice.get_column("times")[0] + 1] }
}

/**
 * Applies each patch that arrives, and runs the view's own script.
 *
 * @param {{root: Model, patches: Source, start: Model}} args
 */
export const applyPatches = ({ root, patches, start }) => {
  const apply = () => root.document.apply_json_patch(JSON.parse(patches.get_column("patch")[0]))
  patches.properties.data.change.connect(apply)
  start.execute(root)
}

/**
 * Shows the moment that a slider is at, by the patches from each moment to its neighbours.
 *
 * @param {{root: Model, back: string[], forth: string[], state: {at?: number}}} args
 * @param {{object: Model}} call
 */
export const showMoment = ({ root, back, forth, state }, { object }) => {
  let at = state.at ?? forth.length - 1
  const apply = (/** @type {string} */ patch) => {
    if (patch) root.document.apply_json_patch(JSON.parse(patch))
  }
  while (at > object.value) apply(back[at--])
  while (at < object.value) apply(forth[++at])
  state.at = at
}
