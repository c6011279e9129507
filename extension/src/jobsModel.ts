import type { ISessionContext } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel, KernelMessage } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { Signal, type ISignal } from '@lumino/signaling';

import { Asking } from './asking';
import { RunningCell } from './cells';
import { KernelTalk, LostError, sentence } from './kernelTalk';
import type { Ask } from './asks';
import type { JobHead } from './store';
import type { Choices, View } from './wire';

/** While a cell runs, it may load the workbench at any line of it. */
const RETRY_WHILE_CELL_RUNS_MS = 4_000;

/** How long a refusal is told: whoever asked has read it by then. */
const REFUSAL_STAYS_MS = 30_000;

/**
 * What there is to show:
 *
 * - `no-notebook`: none is open, or it has no kernel;
 * - `kernel-away`: its kernel is starting, restarting or dead;
 * - `connecting`, `not-loaded`, `failed`: the kernel is there, its workbench is not (yet);
 * - `ready`: the jobs are known; there may be none.
 */
export type Situation = 'no-notebook' | 'kernel-away' | 'connecting' | 'not-loaded' | 'failed' | 'ready';

/**
 * The jobs of the active notebook's own kernel.
 *
 * It listens only while somebody looks (`watch`), always through the connection that the notebook itself has, and to
 * one kernel at a time: with another notebook, kernel or restart both comms are closed and opened anew.
 */
export class JobsModel implements IDisposable {
  /** @param docks whether dashboards are docked beside notebooks: where they are, cells need not show them. */
  constructor(tracker: INotebookTracker, docks: boolean) {
    this._tracker = tracker;
    this._docks = docks;
    tracker.currentChanged.connect(this._followNotebook, this);
    this._followNotebook();
  }

  /** Emitted when anything below has changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The notebook whose jobs these are. */
  get notebook(): NotebookPanel | null {
    return this._notebook;
  }

  get jobs(): readonly JobHead[] {
    return this._talk?.store.jobs ?? [];
  }

  /** The views that each job has, as the last kernel that answered has told; none before that. */
  get views(): readonly View[] {
    return this._views;
  }

  /** The settings of running jobs that have usual values. */
  get settings(): readonly Choices[] {
    return this._settings;
  }

  /** The title of a view; its name where no kernel has told of it. */
  titleOf(view: string): string {
    return this._views.find(known => known.name === view)?.title ?? view;
  }

  /** Why the last request was refused, for half a minute or until the next one or `dismissRefusal`. */
  get refusal(): string {
    return this._refusal;
  }

  /** One sentence on what is wrong in the situation `failed`. */
  get failure(): string {
    return this._talk?.failure ?? '';
  }

  get situation(): Situation {
    if (!this._notebook || this._session?.hasNoKernel) {
      return 'no-notebook';
    }
    switch (this._talk?.state) {
      case 'open':
        return 'ready';
      case 'opening':
        return 'connecting';
      case 'absent':
        return 'not-loaded';
      case 'failed':
        return 'failed';
      default:
        return isUsable(this._kernel) ? 'connecting' : 'kernel-away';
    }
  }

  /** Say that somebody looks at the jobs, or no longer does; nothing is asked of a kernel while nobody looks. */
  watch(who: object, looks: boolean): void {
    const before = this._watched;
    if (looks) {
      this._watchers.add(who);
    } else {
      this._watchers.delete(who);
    }
    if (this._watched !== before) {
      this.reconnect();
    }
  }

  /** Resolves once the situation is neither `connecting` nor `kernel-away`, or after the given time. */
  async settled(patienceMs: number): Promise<Situation> {
    const pending = () => this.situation === 'connecting' || this.situation === 'kernel-away';
    if (pending()) {
      await new Promise<void>(resolve => {
        const done = () => {
          window.clearTimeout(timer);
          this._changed.disconnect(look);
          resolve();
        };
        const look = () => (pending() ? undefined : done());
        const timer = window.setTimeout(done, patienceMs);
        this._changed.connect(look);
      });
    }
    return this.situation;
  }

  /** Ask the kernel for something; a refusal is kept in `refusal`. True when it was done. */
  async perform(ask: Ask): Promise<boolean> {
    this._refuse('');
    try {
      if (!this._talk) {
        throw new Error('the kernel is not connected');
      }
      const reply = await this._talk.request(ask);
      this._refuse(reply.text);
    } catch (reason) {
      this._refuse(sentence(reason));
      if (reason instanceof LostError) {
        this.reconnect();
      }
    }
    this._changed.emit();
    return this._refusal === '';
  }

  dismissRefusal(): void {
    this._refuse('');
    this._changed.emit();
  }

  /** Close what is open and, if somebody looks and a kernel is there, ask it afresh. */
  reconnect(): void {
    this._talk?.dispose();
    this._talk = null;
    this._asking.close();
    window.clearTimeout(this._retryTimer);
    if (this._watched && this._kernel && isUsable(this._kernel)) {
      this._turn = this._asking.begin();
      this._talk = new KernelTalk(this._kernel, this._docks);
      this._talk.told.connect(this._onTold, this);
      this._talk.stateChanged.connect(this._onTalkState, this);
    }
    this._changed.emit();
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this._watchers.clear();
      window.clearTimeout(this._refusalTimer);
      this.reconnect();
      Signal.clearData(this);
    }
  }

  private get _watched(): boolean {
    return this._watchers.size > 0;
  }

  private get _session(): ISessionContext | null {
    return this._notebook && !this._notebook.isDisposed ? this._notebook.sessionContext : null;
  }

  private get _kernel(): Kernel.IKernelConnection | null {
    return this._session?.session?.kernel ?? null;
  }

  private _followNotebook(): void {
    const notebook = this._tracker.currentWidget;
    if (notebook === this._notebook) {
      return;
    }
    const before = this._session;
    if (before) {
      before.kernelChanged.disconnect(this._onKernelChanged, this);
      before.statusChanged.disconnect(this._onStatus, this);
      before.iopubMessage.disconnect(this._onMessage, this);
    }
    this._notebook = notebook;
    this._cell.forget();
    const now = this._session;
    if (now) {
      now.kernelChanged.connect(this._onKernelChanged, this);
      now.statusChanged.connect(this._onStatus, this);
      now.iopubMessage.connect(this._onMessage, this);
    }
    this._refuse('');
    this.reconnect();
  }

  private _onKernelChanged(): void {
    this._refuse('');
    this._cell.forget();
    this.reconnect();
  }

  private _onStatus(_: ISessionContext, status: Kernel.Status): void {
    this._cell.see(status);
    if (this._watched && isUsable(this._kernel) !== (this._talk !== null)) {
      this.reconnect();
    }
  }

  private _onMessage(_: ISessionContext, message: KernelMessage.IMessage): void {
    const told = this._cell.hear(message);
    if (told === 'began') {
      this._retryWhileCellRuns();
    } else if (told === 'ended' && this._asking.cellEnded()) {
      this.reconnect();
    }
  }

  private _refuse(why: string): void {
    window.clearTimeout(this._refusalTimer);
    this._refusal = why;
    if (why) {
      this._refusalTimer = window.setTimeout(() => this.dismissRefusal(), REFUSAL_STAYS_MS);
    }
  }

  private _onTold(talk: KernelTalk): void {
    this._settings = talk.store.hello?.settings ?? [];
    this._views = talk.store.hello?.views ?? [];
    this._changed.emit();
  }

  private _onTalkState(talk: KernelTalk): void {
    if (this._asking.answered(this._turn, talk.state === 'open')) {
      this.reconnect();
      return;
    }
    this._retryWhileCellRuns();
    this._changed.emit();
  }

  private _retryWhileCellRuns(): void {
    window.clearTimeout(this._retryTimer);
    this._retryTimer = window.setTimeout(() => {
      if (this._cell.runs && this._talk?.state === 'absent') {
        this.reconnect();
      }
    }, RETRY_WHILE_CELL_RUNS_MS);
  }

  private readonly _tracker: INotebookTracker;
  private readonly _docks: boolean;
  private readonly _changed = new Signal<this, void>(this);
  private _notebook: NotebookPanel | null = null;
  private _talk: KernelTalk | null = null;
  private _settings: readonly Choices[] = [];
  private _views: readonly View[] = [];
  private _refusal = '';
  private _refusalTimer = 0;
  private readonly _watchers = new Set<object>();
  /** Whether the kernel must be asked again: the same question as a docked view's, with the workbench in the job's place. */
  private readonly _asking = new Asking();
  private _turn = 0;
  private readonly _cell = new RunningCell();
  private _retryTimer = 0;
  private _isDisposed = false;
}

/** Whether a kernel can be talked to now: a comm opened before it is up again would be lost. */
function isUsable(kernel: Kernel.IKernelConnection | null): boolean {
  return (
    kernel !== null &&
    !kernel.isDisposed &&
    kernel.connectionStatus === 'connected' &&
    (kernel.status === 'idle' || kernel.status === 'busy')
  );
}
