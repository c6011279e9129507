import type { KernelMessage } from '@jupyterlab/services';

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
