/** What a page says to a kernel, and the kernel's answers. */

import type { JSONObject } from '@lumino/coreutils';

import { objectOf } from './checked.ts';
import { unknownType, versioned } from './store.ts';
import { EVERY_JOB, VERSION, type Act, type ActName, type Open, type Reply, type See } from './wire.ts';

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

/** The message that opens the comm on which a page acts. */
export function openMessage(docks: boolean): JSONObject {
  return { v: VERSION, type: 'open', ...({ docks } satisfies Open) };
}

/** The message that asks for something. */
export function actMessage(id: string, ask: Ask): JSONObject {
  const act = { id, name: ask.name, job: ask.job ?? '', args: ask.args ?? {} } satisfies Act;
  return { v: VERSION, type: 'act', ...act };
}

/**
 * The message that says what is to be seen: each job at a glance.
 *
 * @param comm the id of the comm on which it is seen; empty: the one that the message opens.
 */
export function seeMessage(comm = ''): JSONObject {
  const see = { sections: { [EVERY_JOB]: { head: HEAD_MS } }, comm } satisfies See;
  return { v: VERSION, type: 'see', ...see };
}

/** A message of the control comm. */
export function replyOf(message: unknown): Reply {
  const told = versioned(message);
  if (told.type !== 'reply') {
    throw unknownType(told);
  }
  return objectOf<Reply>('Reply', told, 'a reply');
}
