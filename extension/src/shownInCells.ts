import type { NotebookPanel } from '@jupyterlab/notebook';

/** In the metadata of an output: what it is about. */
const ABOUT = 'workbench';

/** Whether a cell on the screen shows a view of a job. */
export function isShownInCells(notebook: NotebookPanel | null, job: string): boolean {
  if (!notebook?.isVisible) {
    return false;
  }
  const frame = notebook.content.node.getBoundingClientRect();
  return notebook.content.widgets.some(({ model, node }) => {
    const cell = model.sharedModel;
    const place = node.getBoundingClientRect();
    const isOnScreen = node.isConnected && place.bottom > frame.top && place.top < frame.bottom;
    return isOnScreen && 'getOutputs' in cell && cell.getOutputs().some(output => isAbout(output, job));
  });
}

function isAbout(output: object, job: string): boolean {
  const { metadata } = output as { metadata?: { [ABOUT]?: { job?: unknown } } };
  return metadata?.[ABOUT]?.job === job;
}
