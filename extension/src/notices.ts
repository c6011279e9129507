import { Notification } from '@jupyterlab/apputils';

import type { Docking } from './docking';
import type { JobsModel } from './jobsModel';
import type { Preferences } from './preferences';
import type { JobSummary } from './protocol';

/** What was last known of one run of a job. */
type Known = Pick<JobSummary, 'started_us' | 'state' | 'numRestarts'>;

/** The part of the docked dashboards that is used. */
type Dashboards = Pick<Docking, 'open' | 'shows'>;

/** In the message of a failure that a comparison of architectures makes at a record: it is what people watch. */
const COMPARED = 'on purpose after record';

/**
 * Says it when a job fails or starts again after a failure, once for each time, and nothing of what was so before. Of a
 * restart, the head of a dashboard on the screen tells more, and a notice would cover its charts.
 */
export function announceFailures(model: JobsModel, preferences: Preferences, dashboards: Dashboards): void {
  let kernel = '';
  let known = new Map<string, Known>();

  const announce = (job: JobSummary, before: Known) => {
    const actions = [{ label: 'Open Dashboard', callback: () => void dashboards.open(job.name, '', undefined) }];
    const why = job.failure ? `: ${job.failure}` : '';
    if (job.state === 'FAILED' && before.state !== 'FAILED') {
      Notification.error(`The streaming job ${job.name} failed${why}`, { autoClose: false, actions });
    } else if (job.failure?.includes(COMPARED)) {
      return;
    } else if ((job.numRestarts ?? 0) > (before.numRestarts ?? 0) && preferences.notices === 'failures and restarts' && !dashboards.shows(job.name)) {
      Notification.warning(`The streaming job ${job.name} restarted from its latest checkpoint${why}`, { autoClose: 15_000, actions });
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
