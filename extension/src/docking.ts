import { WidgetTracker } from '@jupyterlab/apputils';
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { INotebookTracker } from '@jupyterlab/notebook';

import { DashboardPanel } from './dashboardPanel';
import type { JobsModel } from './jobsModel';
import { isShownInCells } from './shownInCells';

/** A notebook that is narrower keeps its width: what is docked comes below it. */
const BESIDE_PX = 800;

/** The dashboards and views that are docked beside notebooks. */
export class Docking {
  constructor(shell: JupyterFrontEnd.IShell, notebooks: INotebookTracker, model: JobsModel) {
    this._shell = shell;
    this._notebooks = notebooks;
    this._model = model;
    this.panels = new WidgetTracker<DashboardPanel>({ namespace: 'workbench-dashboards' });
    this.panels.widgetAdded.connect((_, panel) => {
      model.watch(panel, true);
      panel.disposed.connect(() => model.watch(panel, false));
    });
    model.changed.connect(() => {
      const runs = new Map(model.jobs.map(job => [job.name, job.started_us]));
      this.panels.forEach(panel => {
        panel.call(model.titleOf(panel.view));
        const run = panel.path === model.notebook?.context.path ? runs.get(panel.job) : null;
        if (typeof run === 'number') {
          panel.follow(run);
        }
      });
    });
  }

  readonly panels: WidgetTracker<DashboardPanel>;

  /** Show a view (or, with an empty name, the dashboard) of a job beside its notebook; one that is there comes to the front. */
  async open(job: string, view: string, path: string | undefined, activate = true): Promise<void> {
    const place = path ?? this._notebooks.currentWidget?.context.path;
    if (place === undefined) {
      return;
    }
    const known = this.panels.find(panel => panel.job === job && panel.view === view && panel.path === place);
    const panel = known ?? new DashboardPanel({ job, view, title: this._model.titleOf(view), path: place, tracker: this._notebooks });
    if (!known) {
      const beside = this._highest(place);
      const notebook = this._notebooks.find(candidate => candidate.context.path === place);
      await this.panels.add(panel);
      this._shell.add(panel, 'main', {
        mode: beside || (notebook?.node.clientWidth ?? Infinity) < BESIDE_PX ? 'split-bottom' : 'split-right',
        ref: beside?.id ?? notebook?.id ?? null,
        activate: false
      });
    }
    if (activate) {
      this._shell.activateById(panel.id);
    }
  }

  /** Whether a view of a job is on the screen, docked or in a cell. */
  shows(job: string): boolean {
    const isDocked = this.panels.find(panel => panel.job === job && panel.isVisible) !== undefined;
    return isDocked || isShownInCells(this._notebooks.currentWidget, job);
  }

  /** The panel of a notebook that gives up half of its height for another one: the highest that can be seen. */
  private _highest(path: string): DashboardPanel | undefined {
    const seen = this.panels.filter(panel => panel.path === path && panel.isVisible);
    return seen.sort((one, other) => other.node.clientHeight - one.node.clientHeight)[0];
  }

  private readonly _shell: JupyterFrontEnd.IShell;
  private readonly _notebooks: INotebookTracker;
  private readonly _model: JobsModel;
}
