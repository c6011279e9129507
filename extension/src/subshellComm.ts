import type { Kernel } from '@jupyterlab/services';
import type { JSONObject } from '@lumino/coreutils';

/** How long a subshell may take to start; without one a request waits for the running cell, but still arrives. */
const SUBSHELL_PATIENCE_MS = 3_000;

/** Not part of the interface of a comm, but what JupyterLab's own has. */
type LabComm = Kernel.IComm & { subshellStarted?: Promise<void> };

/**
 * A comm, with the subshell on which the kernel handles what it is sent.
 *
 * JupyterLab gives the comms of one target a subshell together and deletes it with the last of them. Where that one goes
 * while the subshell is still starting and another comes meanwhile, the other is given the subshell, which is deleted
 * nevertheless, and whatever it sends is lost. It happens whenever a kernel is restarted, since the comm that was asked of
 * the old kernel waits for the new one. So a comm stays until its subshell has started.
 */
export class SubshellComm {
  constructor(kernel: Kernel.IKernelConnection, target: string) {
    this._kernel = kernel;
    this.comm = kernel.createComm(target);
    const { subshellStarted } = this.comm as LabComm;
    if (kernel.supportsSubshells && this.comm.commsOverSubshells !== 'disabled' && subshellStarted) {
      const settle = () => {
        this._starting = null;
      };
      this._starting = subshellStarted.then(settle, settle);
    }
  }

  readonly comm: Kernel.IComm;

  /** Resolves when the subshell has started or takes too long; what is sent before it goes to the main shell. */
  async ready(): Promise<void> {
    if (this._starting) {
      await Promise.race([this._starting, delay(SUBSHELL_PATIENCE_MS)]);
    }
  }

  /** Tell the kernel of the comm. The future is done when the kernel has handled that, or could not. */
  open(data: JSONObject): Kernel.IShellFuture {
    this._isOpen = true;
    return this.comm.open(data);
  }

  /** Hear nothing more, and close the comm as soon as its subshell has started. */
  close(): void {
    this.comm.onMsg = this.comm.onClose = () => undefined;
    if (this._starting) {
      void this._starting.then(() => this._close());
    } else {
      this._close();
    }
  }

  /** As `close`, where the kernel does not know the comm: closing it would be an error there. */
  abandon(): void {
    this._isOpen = false;
    this.close();
  }

  private _close(): void {
    if (this.comm.isDisposed) {
      return;
    }
    if (this._isOpen && !this._kernel.isDisposed && this._kernel.status !== 'dead') {
      this.comm.close();
    } else {
      this.comm.dispose();
    }
  }

  private readonly _kernel: Kernel.IKernelConnection;
  private _starting: Promise<void> | null = null;
  private _isOpen = false;
}

/** Resolves after the given time. */
export function delay(milliseconds: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, milliseconds));
}
