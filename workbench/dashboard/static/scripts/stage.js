/**
 * Shows the cards of a dashboard that the pressed button stands for: the first one for those that matter now, the last
 * one for all, any other for its own. What was chosen is remembered for the job.
 *
 * @param {[Buttons, Model, Source, string[], string] | null} stage the buttons, where the cards are, the names of those that
 *   matter now, those of all, and the job's
 * @param {[string, Model, Model[]][]} cards
 */
export const watchStage = (stage, cards) => {
  if (stage === null) return
  const [buttons, place, now, names, job] = stage
  const key = `workbench view of ${job}`
  const show = () => {
    const chosen = buttons.active
    const shown = chosen === 0 ? [...now.get_column("name")] : chosen > names.length ? names : [names[chosen - 1]]
    place.setv({ css_classes: ["wb-stage", ...(shown.length > 1 ? ["wb-now"] : [])] }, { sync: false })
    for (const [name, card] of cards) if (names.includes(name)) card.setv({ visible: shown.includes(name) }, { sync: false })
  }
  const remember = () => {
    show()
    try {
      localStorage.setItem(key, buttons.labels[buttons.active])
    } catch {
      // A page without storage of its own forgets.
    }
  }
  const remembered = () => {
    try {
      return buttons.labels.indexOf(localStorage.getItem(key) ?? "")
    } catch {
      return -1
    }
  }
  const before = remembered()
  if (before >= 0) buttons.setv({ active: before }, { sync: false })
  show()
  buttons.properties.active.change.connect(remember)
  now.properties.data.change.connect(show)
  now.patching.connect(show)
}
