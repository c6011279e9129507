/**
 * When a docked view asks the kernel for what it shows: all of that decision, without a kernel, a page or a clock.
 *
 * The kernel answers that there is such a job or that there is none, and it takes its time: a cell may start the job
 * after it has looked and before its answer is here. So what would be a reason to ask is kept while an answer is
 * awaited. Where the answer is that there is no job, and something has happened since it was asked, it is asked again;
 * otherwise the view would wait for a cell that has ended already.
 */
export class Asking {
  /** Ask from now on; what was asked before is void. The number that is returned tells the answers apart. */
  begin(): number {
    this._pending = true;
    this._another = this._reason = false;
    return ++this._turn;
  }

  /** Whether the answer to a question does not count any more. */
  isVoid(turn: number): boolean {
    return turn !== this._turn;
  }

  /** The kernel has answered, or cannot. True when it must be asked again at once. */
  answered(turn: number, found: boolean): boolean {
    if (this.isVoid(turn)) {
      return false;
    }
    const again = this._another || (!found && this._reason);
    this._pending = this._another = this._reason = false;
    this._missing = !found;
    return again;
  }

  /** The notebook was closed: earlier requests are void, and there is no reason to ask until the next request. */
  close(): void {
    this._turn++;
    this._pending = this._missing = false;
    this._run = null;
  }

  /** The kernel went away, and the job with it: whatever was asked is void, and what is new is a reason to ask. */
  lose(): void {
    this.close();
    this._missing = true;
  }

  /** A cell has ended, which may have started the job. True when it must be asked now. */
  cellEnded(): boolean {
    this._reason ||= this._pending;
    return this._missing && !this._pending;
  }

  /**
   * The kernel tells of a run of the job, by the time of its start. True when it must be asked now: there was no such
   * job when it was asked last, or a cell has started it anew and the view of the earlier run must give way.
   */
  told(run: number): boolean {
    if (run === this._run) {
      return false;
    }
    const isAnother = this._run !== null;
    this._run = run;
    if (this._pending) {
      this._reason = true;
      this._another ||= isAnother;
      return false;
    }
    return isAnother || this._missing;
  }

  private _turn = 0;
  private _pending = false;
  /** The last answer was that there is no such job. */
  private _missing = false;
  /** Something has happened since it was asked that may make another answer of "no such job". */
  private _reason = false;
  /** The job was restarted since the request, so the answer may show its earlier run. */
  private _another = false;
  /** The run that the kernel has told of last. */
  private _run: number | null = null;
}
