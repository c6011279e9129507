import type { JobsModel } from './jobsModel';
import type { JobHead } from './store';
import { isOver } from './wording';

/** Tells of each job that starts while somebody looks at its kernel; what ran when we first looked is not new. */
export function onNewJobs(model: JobsModel, tell: (job: JobHead) => void): void {
  let kernel: string | null = null;
  let looked = false;
  const runs = new Set<string>();

  model.changed.connect(() => {
    const current = model.notebook?.sessionContext.session?.kernel?.id ?? null;
    if (current !== kernel) {
      kernel = current;
      looked = false;
      runs.clear();
    }
    if (model.situation === 'not-loaded') {
      looked = true; // without a workbench there are no jobs: the first one is new
    }
    if (model.situation !== 'ready') {
      return;
    }
    for (const job of model.jobs) {
      const run = `${job.started_us} ${job.name}`;
      if (job.started_us !== null && !runs.has(run)) {
        runs.add(run);
        if (looked && !isOver(job)) {
          tell(job);
        }
      }
    }
    looked = true;
  });
}
