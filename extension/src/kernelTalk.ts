import type { Kernel } from '@jupyterlab/services';
import { PromiseDelegate } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import { Signal, type ISignal } from '@lumino/signaling';

import { CONTROL_TARGET, TELEMETRY_TARGET, actMessage, openMessage, replyOf, seeMessage, type Ask } from './asks';
import { Store } from './store';
import { SubshellComm, delay } from './subshellComm';
import type { Reply } from './wire';

/** How long a request may go unanswered before the user is notified. */
const REPLY_PATIENCE_MS = 60_000;

/** How often a comm is opened before the user is notified that its answers are lost. */
const OPENINGS = 3;

/** How long the jobs may take to be told of, once the kernel has handled the comm on which it tells of them. */
const TELEMETRY_PATIENCE_MS = 10_000;

/** The kernel has handled a message, or refused it, and there was no answer: it does not know the comm. */
export class LostError extends Error {}

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
  constructor(kernel: Kernel.IKernelConnection, docks: boolean) {
    this._kernel = kernel;
    this._docks = docks;
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

  /** What the kernel has told of its jobs. */
  readonly store = new Store();

  /** Emitted whenever something in the store is new. */
  get told(): ISignal<this, void> {
    return this._told;
  }

  /** Ask for something; a refusal is a reply too, and only a broken talk rejects. */
  request(ask: Ask): Promise<Reply> {
    const comm = this._control?.comm;
    if (!comm || comm.isDisposed) {
      return Promise.reject(new Error('the kernel is not connected'));
    }
    const id = String(this._nextId++);
    const reply = new PromiseDelegate<Reply>();
    this._waiting.set(id, reply);
    const timer = window.setTimeout(
      () => reply.reject(new Error(`the kernel has not answered '${ask.name}' for a minute and may be busy`)),
      REPLY_PATIENCE_MS
    );
    const sent = comm.send(actMessage(id, ask));
    const lost = () => reply.reject(new LostError(`the kernel lost the request '${ask.name}': try again`));
    sent.done.then(lost, () => undefined); // the kernel answers before it says that it has handled a request
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
    const reply = await this._openControl();
    if (!reply) {
      return;
    }
    if (!reply.data) {
      throw new Error(reply.text || 'the kernel has told nothing of its jobs');
    }
    this.store.welcome(reply.data);
    if (await this._openTelemetry()) {
      this._tell();
    }
  }

  /** The first answer, or null where this talk has ended in the meantime. */
  private async _openControl(): Promise<Reply | null> {
    for (let left = OPENINGS - 1; ; left--) {
      const control = await this._newComm(CONTROL_TARGET);
      if (!control) {
        return null;
      }
      this._control = control;
      control.comm.onMsg = message => this._receive(() => this._settle(replyOf(message.content.data)));
      control.open(openMessage(this._docks));
      try {
        return await this.request({ name: 'hello' });
      } catch (reason) {
        if (!(reason instanceof LostError) || left === 0) {
          throw reason;
        }
        control.abandon();
      }
    }
  }

  /** Whether it is open: the jobs are told of on it. It is opened again as long as nothing comes, which nobody waits for. */
  private async _openTelemetry(left = OPENINGS - 1): Promise<boolean> {
    const telemetry = await this._newComm(TELEMETRY_TARGET);
    if (!telemetry) {
      return false;
    }
    let isHeard = false;
    this._telemetry = telemetry;
    telemetry.comm.onMsg = message =>
      this._receive(() => {
        isHeard = true;
        if (!this.store.take(message.content.data)) {
          this._control?.comm.send(seeMessage(telemetry.comm.commId));
        }
        this._tell();
      });
    const handled = telemetry.open(seeMessage()).done.then(() => delay(TELEMETRY_PATIENCE_MS));
    const listenAgain = () => {
      if (!isHeard && left > 0 && this._telemetry === telemetry) {
        telemetry.close();
        void this._openTelemetry(left - 1);
      }
    };
    handled.then(listenAgain, () => undefined);
    return true;
  }

  /** A comm whose subshell has started, to be opened; or null where this talk has ended in the meantime. */
  private async _newComm(target: string): Promise<SubshellComm | null> {
    await this._kernel.info;
    if (this._hasEnded) {
      return null;
    }
    const made = new SubshellComm(this._kernel, target);
    made.comm.onClose = () => {
      // The kernel has forgotten this comm: closing it once more would be an error there.
      this._control = this._control === made ? null : this._control;
      this._telemetry = this._telemetry === made ? null : this._telemetry;
      this._end('absent');
    };
    await made.ready();
    if (this._hasEnded) {
      made.close();
      return null;
    }
    return made;
  }

  private _tell(): void {
    this._told.emit();
    if (this.store.isComplete && this._state === 'opening') {
      this._enter('open');
    }
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
  }

  private _end(state: 'absent' | 'failed', failure = ''): void {
    if (this._hasEnded) {
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

  private get _hasEnded(): boolean {
    return this._isDisposed || this._state === 'absent' || this._state === 'failed';
  }

  private _closeComms(): void {
    this._control?.close();
    this._telemetry?.close();
    this._control = this._telemetry = null;
    for (const reply of this._waiting.values()) {
      reply.reject(new Error('the connection to the kernel was closed'));
    }
  }

  private readonly _kernel: Kernel.IKernelConnection;
  private readonly _docks: boolean;
  private _control: SubshellComm | null = null;
  private _telemetry: SubshellComm | null = null;
  private _state: TalkState = 'opening';
  private _failure = '';
  private _isDisposed = false;
  private _nextId = 1;
  private readonly _waiting = new Map<string, PromiseDelegate<Reply>>();
  private readonly _stateChanged = new Signal<this, TalkState>(this);
  private readonly _told = new Signal<this, void>(this);
}

/** What went wrong, in one sentence. */
export function sentence(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}
