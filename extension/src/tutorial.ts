import { showErrorMessage } from '@jupyterlab/apputils';
import type { Contents } from '@jupyterlab/services';
import type { CommandRegistry } from '@lumino/commands';

import content from './tutorial.json';

const NAME = 'streaming-tutorial.ipynb';

/** Open the tutorial in a folder; it is put there first unless it is there already, with whatever was done in it. */
export async function openTutorial(contents: Contents.IManager, commands: CommandRegistry, folder: string): Promise<void> {
  const path = folder ? `${folder}/${NAME}` : NAME;
  try {
    if (!(await exists(contents, folder))) {
      await contents.save(path, { type: 'notebook', format: 'json', content });
    }
    await commands.execute('docmanager:open', { path, factory: 'Notebook' });
  } catch (reason) {
    await showErrorMessage(`${path} cannot be opened`, reason as Error);
  }
}

async function exists(contents: Contents.IManager, folder: string): Promise<boolean> {
  const found = await contents.get(folder);
  return (found.content as Contents.IModel[]).some(item => item.name === NAME);
}
