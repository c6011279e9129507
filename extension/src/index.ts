import { ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';

import { CATEGORY, CommandIDs, addJobCommands, chooseJob } from './commands';
import { DashboardPanel } from './dashboardPanel';
import { dashboardIcon, streamIcon } from './icons';
import { JobsModel } from './jobsModel';
import { JobsSidebar } from './sidebar';

/** The sidebar with the jobs of the active notebook, their commands, and their dashboards docked beside it. */
const plugin: JupyterFrontEndPlugin<void> = {
  id: 'workbench-jupyterlab:plugin',
  description: 'Streaming jobs of the active notebook: list, control, docked dashboards.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ICommandPalette, ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    notebooks: INotebookTracker,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null
  ) => {
    const { commands, shell } = app;
    const model = new JobsModel(notebooks);
    const sidebar = new JobsSidebar(model, commands);
    const dashboards = new WidgetTracker<DashboardPanel>({ namespace: 'workbench-dashboards' });
    const reveal = () => shell.activateById(sidebar.id);

    shell.add(sidebar, 'left', { rank: 450, type: 'Streaming jobs' });

    commands.addCommand(CommandIDs.showJobs, {
      label: 'Show Streaming Jobs',
      icon: streamIcon,
      execute: reveal
    });

    commands.addCommand(CommandIDs.openDashboard, {
      label: args => (args.isPalette ? 'Open the Dashboard of a Job…' : 'Open Dashboard'),
      icon: dashboardIcon,
      execute: async args => {
        const job = typeof args.job === 'string' ? args.job : await chooseJob(model, reveal, () => true);
        const path = typeof args.path === 'string' ? args.path : notebooks.currentWidget?.context.path;
        if (job === null || path === undefined) {
          return;
        }
        const open = dashboards.find(dashboard => dashboard.job === job && dashboard.path === path);
        const panel = open ?? new DashboardPanel({ job, path, tracker: notebooks });
        if (!open) {
          const notebook = notebooks.find(candidate => candidate.context.path === path);
          await dashboards.add(panel);
          shell.add(panel, 'main', { mode: 'split-right', ref: notebook?.id ?? null, activate: false });
        }
        shell.activateById(panel.id);
      }
    });

    const listed = [CommandIDs.showJobs, CommandIDs.openDashboard, ...addJobCommands(commands, model, reveal)];
    for (const command of listed) {
      palette?.addItem({ command, category: CATEGORY, args: { isPalette: true } });
    }

    dashboards.widgetAdded.connect((_, dashboard) => {
      model.watch(dashboard, true);
      dashboard.disposed.connect(() => model.watch(dashboard, false));
    });
    model.changed.connect(() => {
      const runs = new Map(model.jobs.map(job => [job.name, job.started_us]));
      dashboards.forEach(dashboard => {
        const run = dashboard.path === model.notebook?.context.path ? runs.get(dashboard.job) : null;
        if (typeof run === 'number') {
          dashboard.follow(run);
        }
      });
    });

    if (restorer) {
      restorer.add(sidebar, sidebar.id);
      void restorer.restore(dashboards, {
        command: CommandIDs.openDashboard,
        args: dashboard => ({ job: dashboard.job, path: dashboard.path }),
        name: dashboard => `${dashboard.path}:${dashboard.job}`
      });
    }

    // A page that goes away says so, if it still can; otherwise the kernel would go on telling it.
    window.addEventListener('pagehide', () => model.dispose());
  }
};

export default plugin;
