import { MainAreaWidget } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { OutputAreaModel, SimplifiedOutputArea } from '@jupyterlab/outputarea';
import { KernelMessage, type Kernel } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';
import type { Message } from '@lumino/messaging';
import { Panel, Widget } from '@lumino/widgets';

import { Asking } from './asking';
import { VIEW_REQUEST, saysCellEnded } from './cells';
import { dashboardIcon } from './icons';
import { sentence } from './kernelTalk';
import { displayCode } from './views';

/**
 * The dashboard of one job or a single view of it, docked: an output area like that of a cell, on the notebook's own kernel connection.
 *
 * The view belongs to the kernel that made it. So the code is executed again when the notebook is opened again, when its
 * kernel was changed, when the job was started anew, and, while there is no such job (as after a restart), after each cell
 * that might have started it (`Asking`).
 */
export class DashboardPanel extends MainAreaWidget<Panel> {
  constructor(options: { job: string; view: string; title: string; path: string; tracker: INotebookTracker }) {
    super({ content: new Panel() });
    this.job = options.job;
    this.view = options.view;
    this._path = options.path;
    this._tracker = options.tracker;
    this.addClass('wb-Dashboard');
    this.title.icon = dashboardIcon;
    this.title.closable = true;
    this.call(options.title);
    this._notice.node.setAttribute('role', 'status');
    this._notice.addClass('wb-Dashboard-notice');
    this.content.addClass('wb-Dashboard-content');
    this.content.addWidget(this._notice);
    this._tracker.widgetAdded.connect(this._bind, this);
    this._bind();
  }

  /** Name of the job. */
  readonly job: string;

  /** Name of the view that is shown; empty for the whole dashboard. */
  readonly view: string;

  /** Path of the notebook in whose kernel the job is. */
  get path(): string {
    return this._notebook?.context.path ?? this._path;
  }

  /** Give the panel the title of its view, which is not known before a kernel has told of it. */
  call(title: string): void {
    this._what = this.view ? `The view ${title}` : 'The dashboard';
    this.title.label = this.view ? `${this.job}: ${title}` : this.job;
    this.title.caption = `${this._what} of the streaming job ${this.job} in ${this.path}`;
    this.node.setAttribute('aria-label', this.title.caption);
  }

  /** Execute the display code again. */
  async refresh(): Promise<void> {
    const notebook = this._notebook;
    if (!notebook) {
      return;
    }
    const turn = this._asking.begin();
    this._say(`Loading ${this._lower} of ${this.job} …`);
    let found = false;
    try {
      await notebook.sessionContext.ready;
      if (!this._isVoid(turn)) {
        found = await this._display(notebook, turn);
      }
    } catch (reason) {
      if (!this._isVoid(turn)) {
        this._dropOutput();
        this._say(`${this._what} of ${this.job} cannot be shown: ${sentence(reason)}.`);
      }
    }
    if (this._asking.answered(turn, found) && !this.isDisposed) {
      void this.refresh();
    }
  }

  /** Take note of the run of the job that the kernel tells of, by the time of its start. */
  follow(run: number): void {
    if (this._asking.told(run)) {
      void this.refresh();
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

  /** Whether the kernel has shown it; where the question has become void meanwhile, the answer is of no use. */
  private async _display(notebook: NotebookPanel, turn: number): Promise<boolean> {
    const kernel = notebook.sessionContext.session?.kernel;
    if (!kernel) {
      this._say(`${this.path} has no kernel. Start one, then run the cell that starts ${this.job}.`);
      return false;
    }
    const subshell = await createSubshell(kernel);
    try {
      if (this._isVoid(turn)) {
        return false;
      }
      if (!subshell) {
        this._say(`${this._what} of ${this.job} appears when the running cell finishes.`);
      }
      const output = this._emptyOutput(notebook);
      const future = execute(kernel, displayCode(this.job, this.view), subshell);
      output.future = future;
      const { content } = await future.done;
      if (this._isVoid(turn)) {
        return false;
      }
      if (content.status === 'ok') {
        this._say('');
        return true;
      }
      this._dropOutput();
      const why = 'evalue' in content ? content.evalue : 'the code was interrupted';
      this._say(`There is no ${this._lower.replace('the ', '')} of ${this.job}: ${why}. It appears here when a cell starts the job.`);
      return false;
    } finally {
      if (subshell && !kernel.isDisposed) {
        kernel.requestDeleteSubshell({ subshell_id: subshell }, true);
      }
    }
  }

  private _isVoid(turn: number): boolean {
    return this.isDisposed || this._asking.isVoid(turn);
  }

  private _bind(): void {
    const found = this._tracker.find(notebook => !notebook.isDisposed && notebook.context.path === this._path);
    if (this._notebook) {
      return;
    }
    if (!found) {
      this._say(`Open ${this._path} to see ${this._lower} of its job ${this.job}.`);
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
    this._asking.close(); // a notebook that is closed loses its kernel first, and what was asked on that account is void
    this._dropOutput();
  }

  private _onNotebookClosed(notebook: NotebookPanel): void {
    this._path = notebook.context.path;
    this._unbind();
    this._bind();
  }

  private _onKernelChanged(): void {
    void this.refresh();
  }

  private _onStatus(_: unknown, status: Kernel.Status): void {
    if (status === 'restarting' || status === 'autorestarting' || status === 'dead') {
      this._asking.lose();
      this._dropOutput();
      this._say(`The kernel was restarted, which ended the job ${this.job}. Run the cell that starts it.`);
    }
  }

  private _onMessage(_: unknown, message: KernelMessage.IMessage): void {
    if (saysCellEnded(message) && this._asking.cellEnded()) {
      void this.refresh();
    }
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

  private get _lower(): string {
    return this._what[0].toLowerCase() + this._what.slice(1);
  }

  private readonly _tracker: INotebookTracker;
  /** How sentences that begin with it call what is shown. */
  private _what = '';
  private readonly _notice = new Widget();
  private readonly _asking = new Asking();
  private _path: string;
  private _notebook: NotebookPanel | null = null;
  private _output: SimplifiedOutputArea | null = null;
}

/** A subshell of its own, so that the code runs beside a cell and not after it; empty where the kernel has none. */
async function createSubshell(kernel: Kernel.IKernelConnection): Promise<string> {
  await kernel.info;
  if (!kernel.supportsSubshells) {
    return '';
  }
  const { content } = await kernel.requestCreateSubshell({}).done;
  return content.subshell_id ?? '';
}

/** As `requestExecute`, on a subshell; an error does not cancel the cells that wait. */
function execute(
  kernel: Kernel.IKernelConnection,
  code: string,
  subshell: string
): Kernel.IShellFuture<KernelMessage.IExecuteRequestMsg, KernelMessage.IExecuteReplyMsg> {
  const message = KernelMessage.createMessage<KernelMessage.IExecuteRequestMsg>({
    msgType: 'execute_request',
    channel: 'shell',
    msgId: VIEW_REQUEST + UUID.uuid4(),
    username: kernel.username,
    session: kernel.clientId,
    subshellId: subshell || null,
    content: {
      code,
      silent: false,
      store_history: false,
      user_expressions: {},
      allow_stdin: false,
      stop_on_error: false
    }
  });
  return kernel.sendShellMessage(message, true, true) as Kernel.IShellFuture<
    KernelMessage.IExecuteRequestMsg,
    KernelMessage.IExecuteReplyMsg
  >;
}
