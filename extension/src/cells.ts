import type { Kernel, KernelMessage } from '@jupyterlab/services';

/** How the ids of the requests begin with which docked views ask for themselves. */
export const VIEW_REQUEST = 'workbench-view-';

/** Whether a message belongs to a cell, in whichever client; code on a subshell is no cell, nor is a view that asks for itself. */
export function isOfCell(message: KernelMessage.IMessage): boolean {
  const parent = message.parent_header as Partial<KernelMessage.IHeader>;
  return parent.msg_type === 'execute_request' && !parent.subshell_id && !parent.msg_id?.startsWith(VIEW_REQUEST);
}

/** Whether a message says that a cell has ended. */
export function saysCellEnded(message: KernelMessage.IMessage): boolean {
  return (
    message.header.msg_type === 'status' &&
    (message.content as { execution_state?: string }).execution_state === 'idle' &&
    isOfCell(message)
  );
}

/** With these statuses begins another life of the kernel, or none: what the one before ran is not heard of again. */
const LOSES_CELL: readonly Kernel.Status[] = ['restarting', 'autorestarting', 'starting', 'terminating', 'dead'];

/** Whether a cell runs, as far as the kernel tells: of one that a restart has cut short nobody says that it has ended. */
export class RunningCell {
  get runs(): boolean {
    return this._runs;
  }

  /** The kernel has sent a message: what it tells of a cell, if anything. */
  hear(message: KernelMessage.IMessage): 'began' | 'ended' | null {
    if (message.header.msg_type === 'execute_input' && isOfCell(message)) {
      this._runs = true;
      return 'began';
    }
    if (saysCellEnded(message)) {
      this._runs = false;
      return 'ended';
    }
    return null;
  }

  /** The kernel has another status. */
  see(status: Kernel.Status): void {
    this._runs &&= !LOSES_CELL.includes(status);
  }

  /** Another kernel is listened to. */
  forget(): void {
    this._runs = false;
  }

  private _runs = false;
}
