import { ILabShell, ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { IMainMenu } from '@jupyterlab/mainmenu';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';

import { CATEGORY, CommandIDs, addJobCommands, chooseJob } from './commands';
import { Docking } from './docking';
import { dashboardIcon, streamIcon } from './icons';
import { followInterest } from './interest';
import { JobsModel } from './jobsModel';
import { addMenus } from './menus';
import { onNewJobs } from './newJobs';
import { announceFailures } from './notices';
import { Preferences } from './preferences';
import { JobsSidebar } from './sidebar';
import { JobsStatus } from './statusBar';
import { openTutorial } from './tutorial';

const PLUGIN = 'workbench-jupyterlab:plugin';

/** The sidebar with the jobs of the active notebook, their commands, their views docked beside it, and notices. */
const plugin: JupyterFrontEndPlugin<void> = {
  id: PLUGIN,
  description: 'Streaming jobs of the active notebook: list, control, docked dashboards and views, notices.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ICommandPalette, ILayoutRestorer, ISettingRegistry, IStatusBar, ILauncher, IMainMenu, ILabShell],
  activate: (
    app: JupyterFrontEnd,
    notebooks: INotebookTracker,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    registry: ISettingRegistry | null,
    statusBar: IStatusBar | null,
    launcher: ILauncher | null,
    mainMenu: IMainMenu | null,
    labShell: ILabShell | null
  ) => {
    const { commands, shell } = app;
    const model = new JobsModel(notebooks, labShell !== null);
    const preferences = new Preferences();
    const sidebar = new JobsSidebar(model, commands);
    const docking = new Docking(shell, notebooks, model);
    const reveal = () => shell.activateById(sidebar.id);

    shell.add(sidebar, 'left', { rank: 450, type: 'Streaming jobs' });

    commands.addCommand(CommandIDs.showJobs, { label: 'Show Streaming Jobs', icon: streamIcon, execute: reveal });
    commands.addCommand(CommandIDs.openDashboard, {
      label: args => (args.isPalette ? 'Open the Dashboard of a Job…' : 'Open Dashboard'),
      icon: dashboardIcon,
      execute: async args => {
        const job = typeof args.job === 'string' ? args.job : await chooseJob(model, reveal, () => true);
        if (job !== null) {
          await docking.open(job, '', text(args.path));
        }
      }
    });
    commands.addCommand(CommandIDs.openView, {
      label: args => `${model.titleOf(text(args.view) ?? 'View')}${args.isPalette ? ' of a Job…' : ''}`,
      caption: args => model.views.find(view => view.name === args.view)?.help ?? '',
      icon: dashboardIcon,
      execute: async args => {
        const job = typeof args.job === 'string' ? args.job : await chooseJob(model, reveal, () => true);
        if (job !== null) {
          await docking.open(job, text(args.view) ?? 'graph', text(args.path));
        }
      }
    });
    commands.addCommand(CommandIDs.openTutorial, {
      label: args => (args.isPalette ? 'Open the Streaming Tutorial' : 'Streaming Tutorial'),
      caption: 'A stream in five cells: run it, tune it, crash it, check it',
      icon: streamIcon,
      execute: args => openTutorial(app.serviceManager.contents, commands, text(args.cwd) ?? '')
    });
    const listed = [
      CommandIDs.showJobs,
      CommandIDs.openDashboard,
      CommandIDs.openTutorial,
      ...addJobCommands(commands, model, reveal)
    ];
    for (const command of listed) {
      palette?.addItem({ command, category: CATEGORY, args: { isPalette: true } });
    }
    addMenus(commands, model, mainMenu, palette);
    launcher?.add({ command: CommandIDs.openTutorial, category: 'Streaming', rank: 0 });

    if (statusBar) {
      const status = new JobsStatus(model, reveal);
      statusBar.registerStatusItem('workbench-jupyterlab:jobs', {
        item: status,
        align: 'left',
        rank: 100,
        isActive: () => preferences.statusBar && model.jobs.length > 0,
        activeStateChanged: model.changed
      });
      const again = followInterest(notebooks, uses => model.watch(status, uses && preferences.statusBar));
      preferences.changed.connect(again);
    }
    announceFailures(model, preferences, docking);
    onNewJobs(model, job => {
      if (job.docks || preferences.dockNewJobs) {
        void docking.open(job.name, '', undefined, false);
      }
    });
    if (registry) {
      preferences.follow(registry, PLUGIN).catch(reason => console.warn('The settings of the workbench:', reason));
    }

    if (restorer) {
      restorer.add(sidebar, sidebar.id);
      void restorer.restore(docking.panels, {
        command: CommandIDs.openView,
        args: panel => ({ job: panel.job, view: panel.view, path: panel.path }),
        name: panel => `${panel.path}:${panel.job}:${panel.view}`
      });
    }

    // A page that goes away says so, if it still can; otherwise the kernel would go on telling it.
    window.addEventListener('pagehide', () => model.dispose());
  }
};

/** An argument of a command, if it is a text. */
function text(argument: unknown): string | undefined {
  return typeof argument === 'string' ? argument : undefined;
}

export default plugin;
