import { MainAreaWidget } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { OutputAreaModel, SimplifiedOutputArea } from '@jupyterlab/outputarea';
import type { Kernel, KernelMessage } from '@jupyterlab/services';
import type { Message } from '@lumino/messaging';
import { Panel, Widget } from '@lumino/widgets';

import { dashboardIcon } from './icons';
import { saysExecuted, sentence } from './kernelTalk';

/** The code whose result is a job's dashboard. */
export function dashboardCode(job: string): string {
  // A JSON string is a Python string too, whatever the name holds.
  return `import workbench as _wb; _wb.job(${JSON.stringify(job)}).dashboard()`;
}

/**
 * The dashboard of one job, docked: an output area like that of a cell, on the notebook's own kernel connection.
 *
 * The view belongs to the kernel that made it. So the code is executed again when the notebook is opened again, when its
 * kernel was changed, and, while there is no such job (as after a restart), after each cell that might have started it.
 */
export class DashboardPanel extends MainAreaWidget<Panel> {
  constructor(options: { job: string; path: string; tracker: INotebookTracker }) {
    super({ content: new Panel() });
    this.job = options.job;
    this._path = options.path;
    this._tracker = options.tracker;
    this.addClass('wb-Dashboard');
    this.title.label = options.job;
    this.title.caption = `Dashboard of the streaming job ${options.job} in ${options.path}`;
    this.title.icon = dashboardIcon;
    this.title.closable = true;
    this.node.setAttribute('aria-label', this.title.caption);
    this._notice.node.setAttribute('role', 'status');
    this._notice.addClass('wb-Dashboard-notice');
    this.content.addWidget(this._notice);
    this._tracker.widgetAdded.connect(this._bind, this);
    this._bind();
  }

  /** Name of the job. */
  readonly job: string;

  /** Path of the notebook in whose kernel the job is. */
  get path(): string {
    return this._notebook?.context.path ?? this._path;
  }

  /** Execute the display code again. */
  async refresh(): Promise<void> {
    const notebook = this._notebook;
    if (!notebook || this._inFlight) {
      return;
    }
    this._inFlight = 'pending';
    try {
      await notebook.sessionContext.ready;
      await this._display(notebook);
    } catch (reason) {
      this._say(`The dashboard of ${this.job} cannot be shown: ${sentence(reason)}.`);
    } finally {
      this._inFlight = '';
    }
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._tracker.widgetAdded.disconnect(this._bind, this);
      this._unbind();
      super.dispose();
    }
  }

  protected override onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    this.content.node.focus();
  }

  private async _display(notebook: NotebookPanel): Promise<void> {
    const kernel = notebook.sessionContext.session?.kernel;
    if (!kernel) {
      this._say(`${this.path} has no kernel. Start one, and the cell that runs ${this.job}.`);
      return;
    }
    if (kernel.status === 'busy') {
      this._say('The kernel is busy: the dashboard appears when the running cell has ended.');
    }
    const output = this._emptyOutput(notebook);
    // An error here must not cancel the cells that wait behind this code, as it would by default.
    const future = kernel.requestExecute({
      code: dashboardCode(this.job),
      store_history: false,
      stop_on_error: false,
      allow_stdin: false
    });
    this._inFlight = future.msg.header.msg_id;
    output.future = future;
    const reply = await future.done;
    if (this._output !== output) {
      return;
    }
    if (reply.content.status === 'ok') {
      this._gone = false;
      this._say('');
    } else {
      this._sayGone('evalue' in reply.content ? reply.content.evalue : 'the code was interrupted');
    }
  }

  private _bind(): void {
    const found = this._tracker.find(notebook => !notebook.isDisposed && notebook.context.path === this._path);
    if (this._notebook) {
      return;
    }
    if (!found) {
      this._say(`Open ${this._path} to see the dashboard of its job ${this.job}.`);
      return;
    }
    this._notebook = found;
    found.disposed.connect(this._onNotebookClosed, this);
    found.sessionContext.kernelChanged.connect(this._onKernelChanged, this);
    found.sessionContext.statusChanged.connect(this._onStatus, this);
    found.sessionContext.iopubMessage.connect(this._onMessage, this);
    void this.refresh();
  }

  private _unbind(): void {
    const notebook = this._notebook;
    if (notebook && !notebook.isDisposed) {
      notebook.disposed.disconnect(this._onNotebookClosed, this);
      notebook.sessionContext.kernelChanged.disconnect(this._onKernelChanged, this);
      notebook.sessionContext.statusChanged.disconnect(this._onStatus, this);
      notebook.sessionContext.iopubMessage.disconnect(this._onMessage, this);
    }
    this._notebook = null;
    this._dropOutput();
  }

  private _onNotebookClosed(notebook: NotebookPanel): void {
    this._path = notebook.context.path;
    this._unbind();
    this._bind();
  }

  private _onKernelChanged(): void {
    this._inFlight = '';
    this._dropOutput();
    void this.refresh();
  }

  private _onStatus(_: unknown, status: Kernel.Status): void {
    if (status === 'restarting' || status === 'autorestarting' || status === 'dead') {
      this._inFlight = '';
      this._gone = true;
      this._dropOutput();
      this._say(`The kernel was restarted, and the job ${this.job} ended with it. Run the cell that starts it.`);
    }
  }

  private _onMessage(_: unknown, message: KernelMessage.IMessage): void {
    const ours = (message.parent_header as { msg_id?: string }).msg_id === this._inFlight;
    if (this._gone && !ours && saysExecuted(message)) {
      void this.refresh();
    }
  }

  private _sayGone(why: string): void {
    this._gone = true;
    this._dropOutput();
    this._say(`There is no dashboard of ${this.job} to show: ${why}. It appears here when a cell has started the job.`);
  }

  private _say(sentence: string): void {
    this._notice.node.textContent = sentence;
    this._notice.setHidden(sentence === '');
  }

  private _emptyOutput(notebook: NotebookPanel): SimplifiedOutputArea {
    this._dropOutput();
    this._output = new SimplifiedOutputArea({
      model: new OutputAreaModel({ trusted: true }),
      rendermime: notebook.content.rendermime
    });
    this.content.addWidget(this._output);
    return this._output;
  }

  private _dropOutput(): void {
    this._output?.dispose();
    this._output = null;
  }

  private readonly _tracker: INotebookTracker;
  private readonly _notice = new Widget();
  private _path: string;
  private _notebook: NotebookPanel | null = null;
  private _output: SimplifiedOutputArea | null = null;
  /** There was no such job when we last looked. */
  private _gone = false;
  /** Id of our own request while it runs: its end must not be taken for that of a cell. */
  private _inFlight = '';
}
