import type { Kernel } from '@jupyterlab/services';
import { PromiseDelegate, type JSONObject } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import { Signal, type ISignal } from '@lumino/signaling';

import {
  CONTROL_TARGET,
  TELEMETRY_TARGET,
  PROTOCOL_VERSION,
  parseReply,
  parseTelemetry,
  requestMessage,
  type JobSummary,
  type Reply,
  type Request
} from './protocol';

/** How long a subshell may take to start; without one a request waits for the running cell, but still arrives. */
const SUBSHELL_PATIENCE_MS = 3_000;

/** How long a request may go unanswered before the person is told. */
const REPLY_PATIENCE_MS = 60_000;

/**
 * - `opening`: the kernel has been asked;
 * - `open`: it answers;
 * - `absent`: the workbench is not loaded in it (it refused the comm, or has closed it since);
 * - `failed`: something else is wrong, see `failure`.
 */
export type TalkState = 'opening' | 'open' | 'absent' | 'failed';

/**
 * The two comms of one kernel, from opening to closing; a restarted kernel gets a new one.
 *
 * The second comm is opened once the first is answered, so a kernel without the workbench refuses one, not two.
 */
export class KernelTalk implements IDisposable {
  constructor(kernel: Kernel.IKernelConnection) {
    this._kernel = kernel;
    this._open().catch(reason => this._end('failed', sentence(reason)));
  }

  get state(): TalkState {
    return this._state;
  }

  /** One sentence on what is wrong where the state is `failed`. */
  get failure(): string {
    return this._failure;
  }

  /** Emitted with each new state. */
  get stateChanged(): ISignal<this, TalkState> {
    return this._stateChanged;
  }

  /** Emitted with the jobs of the kernel whenever something about them is new. */
  get jobsArrived(): ISignal<this, JobSummary[]> {
    return this._jobsArrived;
  }

  /** Ask for something; a refusal is a reply too, and only a broken talk rejects. */
  request(request: Request): Promise<Reply> {
    const control = this._control;
    if (!control || control.isDisposed) {
      return Promise.reject(new Error('the kernel is not connected'));
    }
    const id = String(this._nextId++);
    const reply = new PromiseDelegate<Reply>();
    this._waiting.set(id, reply);
    const timer = window.setTimeout(
      () => reply.reject(new Error(`the kernel has not answered '${request.request}' for a minute; it may be busy`)),
      REPLY_PATIENCE_MS
    );
    control.send(requestMessage(id, request) as unknown as JSONObject);
    return reply.promise.finally(() => {
      window.clearTimeout(timer);
      this._waiting.delete(id);
    });
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Close both comms. */
  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._closeComms();
    Signal.clearData(this);
  }

  private async _open(): Promise<void> {
    if (!this._kernel.handleComms) {
      throw new Error('another view of this notebook holds the connection to its kernel');
    }
    const control = await this._openComm(CONTROL_TARGET);
    if (!control) {
      return;
    }
    this._control = control;
    control.onMsg = message => this._receive(() => this._settle(parseReply(message.content.data)));
    const reply = await this.request({ request: 'list' });
    if (!reply.ok) {
      throw new Error(reply.error);
    }
    const telemetry = await this._openComm(TELEMETRY_TARGET);
    if (!telemetry) {
      return;
    }
    this._telemetry = telemetry;
    telemetry.onMsg = message => this._receive(() => this._jobsArrived.emit(parseTelemetry(message.content.data)));
    this._jobsArrived.emit(reply.jobs);
    this._enter('open');
  }

  /** An open comm on a subshell of its own, or null where this talk was given up in the meantime. */
  private async _openComm(target: string): Promise<Kernel.IComm | null> {
    await this._kernel.info;
    if (this._isDisposed) {
      return null;
    }
    const comm = this._kernel.createComm(target);
    comm.onClose = () => {
      // The kernel has forgotten this comm: closing it once more would be an error there.
      this._control = this._control === comm ? null : this._control;
      this._telemetry = this._telemetry === comm ? null : this._telemetry;
      this._end('absent');
    };
    if (this._kernel.supportsSubshells && comm.commsOverSubshells !== 'disabled') {
      // Not part of the interface of a comm, but what JupyterLab's own has; what is sent before it goes to the main shell.
      const { subshellStarted } = comm as Kernel.IComm & { subshellStarted?: Promise<void> };
      await Promise.race([subshellStarted, delay(SUBSHELL_PATIENCE_MS)]);
    }
    if (this._isDisposed) {
      comm.dispose();
      return null;
    }
    comm.open({ version: PROTOCOL_VERSION });
    return comm;
  }

  private _receive(take: () => void): void {
    try {
      take();
    } catch (reason) {
      this._end('failed', sentence(reason));
    }
  }

  private _settle(reply: Reply): void {
    this._waiting.get(reply.id)?.resolve(reply);
    if (reply.ok) {
      this._jobsArrived.emit(reply.jobs);
    }
  }

  private _end(state: 'absent' | 'failed', failure = ''): void {
    if (this._isDisposed || this._state === 'absent' || this._state === 'failed') {
      return;
    }
    this._failure = failure;
    this._enter(state);
    this._closeComms();
  }

  private _enter(state: TalkState): void {
    if (!this._isDisposed && this._state !== state) {
      this._state = state;
      this._stateChanged.emit(state);
    }
  }

  private _closeComms(): void {
    for (const comm of [this._control, this._telemetry]) {
      if (comm && !comm.isDisposed) {
        comm.onClose = () => undefined;
        if (this._kernel.isDisposed) {
          comm.dispose();
        } else {
          comm.close();
        }
      }
    }
    this._control = this._telemetry = null;
    for (const reply of this._waiting.values()) {
      reply.reject(new Error('the connection to the kernel was closed'));
    }
  }

  private readonly _kernel: Kernel.IKernelConnection;
  private _control: Kernel.IComm | null = null;
  private _telemetry: Kernel.IComm | null = null;
  private _state: TalkState = 'opening';
  private _failure = '';
  private _isDisposed = false;
  private _nextId = 1;
  private readonly _waiting = new Map<string, PromiseDelegate<Reply>>();
  private readonly _stateChanged = new Signal<this, TalkState>(this);
  private readonly _jobsArrived = new Signal<this, JobSummary[]>(this);
}

/** What went wrong, in one sentence. */
export function sentence(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}

function delay(milliseconds: number): Promise<void> {
  return new Promise(resolve => window.setTimeout(resolve, milliseconds));
}
