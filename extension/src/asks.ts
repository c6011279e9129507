/** What a page says to a kernel, and the kernel's answers. */

import type { JSONObject } from '@lumino/coreutils';

import { WireError, isFields } from './checked.ts';
import { versioned } from './store.ts';
import { EVERY_JOB, VERSION, type ActName } from './wire.ts';

export const CONTROL_TARGET = 'workbench:control';
export const TELEMETRY_TARGET = 'workbench:telemetry';

/** How often a list of jobs changes at most. */
const HEAD_MS = 1_000;

export type Setting = string | number | null;
export type Settings = { [name: string]: Setting };

/** What may be asked of a kernel. */
export interface Ask {
  name: ActName;
  job?: string;
  args?: { [name: string]: string | Settings };
}

export interface Reply {
  id: string;
  ok: boolean;
  /** What went wrong, in one sentence. */
  text: string;
  data: unknown;
}

/** The message that asks for something. */
export function actMessage(id: string, ask: Ask): JSONObject {
  return { v: VERSION, type: 'act', id, name: ask.name, job: ask.job ?? '', args: ask.args ?? {} };
}

/**
 * The message that says what is to be seen: each job at a glance.
 *
 * @param comm the id of the comm on which it is seen; empty: the one that the message opens.
 */
export function seeMessage(comm = ''): JSONObject {
  return { v: VERSION, type: 'see', sections: { [EVERY_JOB]: { head: HEAD_MS } }, comm };
}

/** A message of the control comm. */
export function replyOf(message: unknown): Reply {
  const { type, id, ok, text, data } = versioned(message);
  if (type !== 'reply' || typeof id !== 'string' || typeof ok !== 'boolean' || typeof text !== 'string') {
    throw new WireError('the kernel sent a reply without its id, whether it is done, or a text');
  }
  return { id, ok, text, data: isFields(data) ? data : null };
}
