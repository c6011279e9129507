/** Numbers, times and situations in words. */

import type { Situation } from './jobsModel';
import type { JobHead } from './store';

const NOT_KNOWN = '–';

const LAG_UNITS: [string, number][] = [
  ['y', 31_557_600e6],
  ['d', 86_400e6],
  ['h', 3_600e6],
  ['min', 60e6],
  ['s', 1e6],
  ['ms', 1e3]
];

/** `1234567` as `1.23M`. */
export function count(value: number | null): string {
  if (value === null) {
    return NOT_KNOWN;
  }
  for (const [unit, size] of [['G', 1e9], ['M', 1e6], ['k', 1e3]] as [string, number][]) {
    if (Math.abs(value) >= size) {
      return `${(value / size).toPrecision(3)}${unit}`;
    }
  }
  return Number.isInteger(value) ? String(value) : value.toFixed(value < 10 ? 1 : 0);
}

/** Microseconds in the largest unit that leaves a number of at least one, as `6.0 h`. */
export function duration(us: number | null): string {
  if (us === null) {
    return NOT_KNOWN;
  }
  for (const [unit, size] of LAG_UNITS) {
    if (Math.abs(us) >= size) {
      const amount = us / size;
      return `${amount.toFixed(Math.abs(amount) < 10 ? 1 : 0)} ${unit}`;
    }
  }
  return us === 0 ? '0 s' : '< 1 ms';
}

/** Milliseconds as a clock shows them: `1:02:03` or `2:03`. */
export function runningTime(ms: number | null): string {
  if (ms === null) {
    return NOT_KNOWN;
  }
  const seconds = Math.floor(ms / 1000);
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const shown = parts[0] > 0 ? parts : parts.slice(1);
  return shown.map((part, index) => (index === 0 ? String(part) : String(part).padStart(2, '0'))).join(':');
}

/** What to say instead of a list of jobs; empty where there is a list. */
export function explanation(situation: Situation, jobs: number): string {
  switch (situation) {
    case 'no-notebook':
      return 'Open a notebook to list the jobs in its kernel.';
    case 'kernel-away':
      return 'The kernel is not responding: it is starting, or a cell is running. Its jobs appear here when it responds.';
    case 'connecting':
      return 'Loading jobs …';
    case 'not-loaded':
      return 'The workbench is not loaded in this kernel. Run this in a cell:';
    case 'failed':
      return 'The jobs of this kernel could not be loaded.';
    case 'ready':
      return jobs > 0 ? '' : 'No jobs in this kernel yet. To start one, begin a cell with:';
  }
}

/** The line to type that goes with an explanation; empty where there is none. */
export function remedy(situation: Situation, jobs: number): string {
  if (situation === 'not-loaded') {
    return '%load_ext workbench';
  }
  return situation === 'ready' && jobs === 0 ? '%%stream my_job' : '';
}

/** States after which a job does nothing more. */
const OVER = ['FINISHED', 'CANCELED', 'FAILED'];

export function isOver(job: JobHead): boolean {
  return OVER.includes(job.state);
}

/** The state as the badge shows it. */
export function stateLabel(job: JobHead): string {
  return job.paused && !isOver(job) ? 'PAUSED' : job.state;
}

/** The jobs of a kernel in one line: for the status bar, and for who hears or hovers over it. */
export function statusLine(jobs: readonly JobHead[]): { short: string; long: string } {
  const alive = jobs.filter(job => !isOver(job));
  const failed = jobs.filter(job => job.state === 'FAILED').length;
  const rate = alive.reduce((sum, job) => sum + (job.read_per_s ?? 0), 0);
  const parts = [`${alive.length} ${alive.length === 1 ? 'job' : 'jobs'}`];
  if (alive.length > 0) {
    parts.push(`${count(rate)}/s`);
  }
  if (failed > 0) {
    parts.push(`${failed} failed`);
  }
  const names = alive.map(job => `${job.name} ${stateLabel(job)}`).join(', ');
  const short = parts.join(' · ');
  return { short, long: names ? `Streaming: ${short} (${names})` : `Streaming: ${short}` };
}
