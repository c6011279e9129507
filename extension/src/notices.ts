import { Notification } from '@jupyterlab/apputils';

import type { Docking } from './docking';
import type { JobsModel } from './jobsModel';
import type { Preferences } from './preferences';
import { textOf } from './sentences';
import type { JobHead } from './store';

/** What was last known of one run of a job. */
type Known = Pick<JobHead, 'started_us' | 'state' | 'restarts'>;

/** The part of the docked dashboards that is used. */
type Dashboards = Pick<Docking, 'open' | 'shows'>;

/** In the message of a failure that a comparison of architectures makes at a record: it is what people watch. */
const COMPARED = 'on purpose after record';

/** How long the notice of a restart stays, in milliseconds. */
const RESTART_STAYS_MS = 8_000;

/**
 * Says it when a job fails or starts again after a failure, once for each time, and nothing of what was so before.
 *
 * There is no notice where one would only cover what tells more: of a job that is stepped, whose failures are steps that
 * somebody takes; and of restarts while a view of the job is on the screen. A job that restarts again and again has one
 * notice, which counts.
 */
export function announceFailures(model: JobsModel, preferences: Preferences, dashboards: Dashboards): void {
  let kernel = '';
  let known = new Map<string, Known>();
  /** The notice of each run of a job that has restarted, and how many restarts it had before. */
  const restarted = new Map<string, { notice: string; since: number }>();

  const tellRestart = (job: JobHead, before: number, why: string, actions: Notification.IAction[]) => {
    const run = `${job.name} ${job.started_us}`;
    const shown = restarted.get(run);
    const isOpen = shown !== undefined && Notification.manager.has(shown.notice);
    const since = isOpen ? shown.since : before;
    const times = (job.restarts ?? 0) - since;
    const often = times > 1 ? ` ${times} times, each time` : '';
    const message = `The streaming job ${job.name} restarted${often} from its latest checkpoint${why}`;
    const options = { autoClose: RESTART_STAYS_MS, actions };
    if (isOpen) {
      Notification.update({ id: shown.notice, message, type: 'warning', ...options });
    } else {
      restarted.set(run, { notice: Notification.warning(message, options), since });
    }
  };

  const announce = (job: JobHead, before: Known) => {
    const actions = [{ label: 'Open Dashboard', callback: () => void dashboards.open(job.name, '', undefined) }];
    const failure = textOf(job.failure);
    const why = failure && `: ${failure}`;
    const hasRestarted = (job.restarts ?? 0) > (before.restarts ?? 0);
    if (job.stepped) {
      return;
    }
    if (job.state === 'FAILED' && before.state !== 'FAILED') {
      Notification.error(`The streaming job ${job.name} failed${why}`, { autoClose: false, actions });
    } else if (hasRestarted && !failure.includes(COMPARED) && preferences.notices === 'failures and restarts' && !dashboards.shows(job.name)) {
      tellRestart(job, before.restarts ?? 0, why, actions);
    }
  };

  model.changed.connect(() => {
    if (model.situation !== 'ready') {
      return;
    }
    const current = model.notebook?.sessionContext.session?.kernel?.id ?? '';
    const sameKernel = current === kernel;
    const now = new Map<string, Known>();
    for (const job of model.jobs) {
      const before = sameKernel ? known.get(job.name) : undefined;
      if (before?.started_us === job.started_us && before && preferences.notices !== 'never') {
        announce(job, before);
      }
      now.set(job.name, job);
    }
    kernel = current;
    known = now;
  });
}
