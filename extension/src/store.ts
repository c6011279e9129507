/** What a kernel has told of its jobs: its hello, and the newest sections of their frames. */

import { WireError, isFields, objectOf, type Fields } from './checked.ts';
import { FRAME_MAX, VERSION, type Head, type Hello } from './wire.ts';

/** One job of a kernel. */
export interface JobHead extends Head {
  readonly name: string;
  /** The cell that started it asks for its dashboard beside the notebook. */
  readonly docks: boolean;
}

interface Known {
  readonly seq: number;
  readonly head: Head;
}

export class Store {
  get hello(): Hello | null {
    return this._hello;
  }

  /** The jobs whose heads are known, in the order of their start. */
  get jobs(): JobHead[] {
    const docks = this._hello?.docks ?? [];
    return (this._hello?.jobs ?? []).flatMap(name => {
      const known = this._known.get(name);
      return known ? [{ ...known.head, name, docks: docks.includes(name) }] : [];
    });
  }

  /** Whether the head of each job is known: one of them that comes later is of a new job. */
  get isComplete(): boolean {
    return this._hello?.jobs.every(name => this._known.has(name)) ?? false;
  }

  /** Take what a kernel tells of itself. */
  welcome(hello: Hello): void {
    this._hello = hello;
    for (const name of [...this._known.keys()].filter(name => !hello.jobs.includes(name))) {
      this._known.delete(name);
    }
  }

  /**
   * Take a message of the kernel.
   *
   * @returns false where it is a patch of a frame that is not here: the sections must be asked for anew.
   */
  take(message: unknown): boolean {
    const told = versioned(message);
    switch (told.type) {
      case 'hello':
        this.welcome(objectOf<Hello>('Hello', told, 'a hello'));
        return true;
      case 'frame':
        return this._takeFrame(told);
      default:
        throw unknownType(told);
    }
  }

  private _takeFrame(told: Fields): boolean {
    const { job, seq, base } = told;
    if (typeof job !== 'string' || !Number.isSafeInteger(seq) || (base !== null && !Number.isSafeInteger(base))) {
      throw new WireError('the kernel sent a frame without the name of its job, its number or that of its base');
    }
    if (JSON.stringify(told).length > FRAME_MAX) {
      throw new WireError(`the kernel sent a frame of ${job} with more than 8 MB`);
    }
    const where = `the head of ${job}`;
    if (base === null) {
      this._known.set(job, { seq: seq as number, head: objectOf<Head>('Head', told.head, where) });
      return true;
    }
    const before = this._known.get(job);
    if (!before || before.seq !== base) {
      return false;
    }
    const changed = 'head' in told ? objectOf<Partial<Head>>('Head', told.head, where, true) : {};
    this._known.set(job, { seq: seq as number, head: { ...before.head, ...changed } });
    return true;
  }

  private _hello: Hello | null = null;
  private readonly _known = new Map<string, Known>();
}

/** A message of the version that is spoken here. */
export function versioned(message: unknown): Fields {
  if (!isFields(message)) {
    throw new WireError('the kernel sent a message that is not a JSON object');
  }
  if (message.v !== VERSION) {
    throw new WireError(
      `the kernel speaks version ${String(message.v)} of the workbench's wire, this page version ${VERSION}: ` +
        'install matching streaming-workbench and workbench-jupyterlab, then reload the page'
    );
  }
  return message;
}

export function unknownType(told: Fields): WireError {
  return new WireError(`the kernel sent a message of an unknown type: ${String(told.type)}`);
}
