import type { ICommandPalette } from '@jupyterlab/apputils';
import type { IMainMenu } from '@jupyterlab/mainmenu';
import type { CommandRegistry } from '@lumino/commands';
import type { IDisposable } from '@lumino/disposable';
import { Menu } from '@lumino/widgets';

import { CATEGORY, CommandIDs } from './commands';
import type { JobsModel } from './jobsModel';

/** What asks for the job, by the groups of the menu; the views come behind the first two. */
const GROUPS = [
  [CommandIDs.tune, CommandIDs.pause, CommandIDs.resume, CommandIDs.checkpoint, CommandIDs.savepoint, CommandIDs.fail, CommandIDs.stop],
  [CommandIDs.openTutorial]
];

/** The menu "Streaming", and a submenu and commands of the palette for the views, as the kernel tells of them. */
export function addMenus(
  commands: CommandRegistry,
  model: JobsModel,
  mainMenu: IMainMenu | null,
  palette: ICommandPalette | null
): void {
  const menu = new Menu({ commands });
  menu.id = 'jp-mainmenu-workbench';
  menu.title.label = 'Streaming';
  const views = new Menu({ commands });
  views.id = 'jp-mainmenu-workbench-views';
  views.title.label = 'Open View';
  const asks = { isPalette: true };
  menu.addItem({ command: CommandIDs.showJobs });
  menu.addItem({ command: CommandIDs.openDashboard, args: asks });
  menu.addItem({ type: 'submenu', submenu: views });
  for (const group of GROUPS) {
    menu.addItem({ type: 'separator' });
    group.forEach(command => menu.addItem({ command, args: asks }));
  }
  mainMenu?.addMenu(menu, true, { rank: 6 });

  let told = '';
  let inPalette: IDisposable[] = [];
  const follow = () => {
    const names = model.views.map(view => view.name).join();
    if (names === told) {
      return;
    }
    told = names;
    views.clearItems();
    inPalette.forEach(item => item.dispose());
    inPalette = [];
    for (const { name: view } of model.views) {
      views.addItem({ command: CommandIDs.openView, args: { view } });
      if (palette) {
        inPalette.push(palette.addItem({ command: CommandIDs.openView, category: CATEGORY, args: { ...asks, view } }));
      }
    }
  };
  model.changed.connect(follow);
}
