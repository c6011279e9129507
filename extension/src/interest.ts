import { NotebookActions, type INotebookTracker, type NotebookPanel } from '@jupyterlab/notebook';

/**
 * Calls `look` with whether the active notebook is one that uses the workbench: now, and whenever that may have changed.
 *
 * Only such a notebook's kernel is asked for jobs while nobody looks at the list; a kernel that has never heard of the
 * workbench would complain about every question in its log.
 */
export function followInterest(notebooks: INotebookTracker, look: (uses: boolean) => void): () => void {
  const again = () => look(usesWorkbench(notebooks.currentWidget));
  notebooks.currentChanged.connect((_, notebook) => {
    again();
    void notebook?.context.ready.then(again);
  });
  NotebookActions.executionScheduled.connect(again);
  again();
  return again;
}

function usesWorkbench(notebook: NotebookPanel | null): boolean {
  const cells = notebook?.content.model?.sharedModel.cells ?? [];
  return cells.some(cell => cell.cell_type === 'code' && /\bworkbench\b/.test(cell.getSource()));
}
