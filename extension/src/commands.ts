import { Dialog, InputDialog, showDialog } from '@jupyterlab/apputils';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { JobsModel } from './jobsModel';
import type { Ask, Settings } from './asks';
import type { JobHead } from './store';
import { explanation, isOver, remedy } from './wording';

export const CATEGORY = 'Streaming Workbench';

export namespace CommandIDs {
  export const showJobs = 'workbench:show-jobs';
  export const openDashboard = 'workbench:open-dashboard';
  export const openView = 'workbench:open-view';
  export const openTutorial = 'workbench:open-tutorial';
  export const pause = 'workbench:pause';
  export const resume = 'workbench:resume';
  export const checkpoint = 'workbench:checkpoint';
  export const savepoint = 'workbench:savepoint';
  export const stop = 'workbench:stop';
  export const tune = 'workbench:tune';
  export const fail = 'workbench:fail';
}

/** How long a command waits for the kernel's list of jobs. */
const PATIENCE_MS = 5_000;

/**
 * Add what can be asked of a job. Each command takes `{ job }` and asks for the job where the argument is missing.
 *
 * @returns the ids that belong into the palette.
 */
export function addJobCommands(commands: CommandRegistry, model: JobsModel, reveal: () => void): string[] {
  const choose = (args: ReadonlyPartialJSONObject, fits: (job: JobHead) => boolean) =>
    typeof args.job === 'string' ? Promise.resolve(args.job) : chooseJob(model, reveal, fits);

  const add = (id: string, label: string, fits: (job: JobHead) => boolean, ask: (job: string) => Ask) => {
    commands.addCommand(id, {
      label: args => (args.isPalette ? `${label}…` : label),
      execute: async args => {
        const job = await choose(args, fits);
        return job !== null && (await model.perform(ask(job)));
      }
    });
  };
  const alive = (job: JobHead) => !isOver(job);
  add(CommandIDs.pause, 'Pause a Job', job => alive(job) && !job.paused, job => ({ name: 'pause', job }));
  add(CommandIDs.resume, 'Resume a Job', job => alive(job) && job.paused, job => ({ name: 'resume', job }));
  add(CommandIDs.checkpoint, 'Take a Checkpoint of a Job', alive, job => ({ name: 'checkpoint', job }));
  add(CommandIDs.stop, 'Stop a Job', alive, job => ({ name: 'stop', job }));

  commands.addCommand(CommandIDs.savepoint, {
    label: 'Take a Savepoint of a Job…',
    execute: async args => {
      const job = await choose(args, alive);
      const name = job === null ? null : await chooseName(args, job);
      return job !== null && name !== null && (await model.perform({ name: 'savepoint', job, args: { name } }));
    }
  });
  commands.addCommand(CommandIDs.tune, {
    label: 'Change a Setting of a Job…',
    execute: async args => {
      const job = await choose(args, alive);
      const settings = job === null ? null : await chooseSettings(args, model, job);
      return job !== null && settings !== null && (await model.perform({ name: 'tune', job, args: { settings } }));
    }
  });
  commands.addCommand(CommandIDs.fail, {
    label: 'Fail a Task of a Job…',
    execute: async args => {
      const job = await choose(args, alive);
      const task = job === null ? null : await chooseTask(args, model, job);
      return job !== null && task !== null && (await model.perform({ name: 'fail', job, args: { task } }));
    }
  });
  return [
    CommandIDs.pause,
    CommandIDs.resume,
    CommandIDs.checkpoint,
    CommandIDs.savepoint,
    CommandIDs.stop,
    CommandIDs.tune,
    CommandIDs.fail
  ];
}

/**
 * The job that the person means: the only one that fits, or the choice from a list.
 *
 * @returns null where there is none (the reason has been said) or where the person gave up.
 */
export async function chooseJob(
  model: JobsModel,
  reveal: () => void,
  fits: (job: JobHead) => boolean
): Promise<string | null> {
  reveal();
  const situation = await model.settled(PATIENCE_MS);
  const names = model.jobs.filter(fits).map(job => job.name);
  if (names.length === 0) {
    const why = explanation(situation, model.jobs.length) || 'No job in this kernel is in a state that allows this.';
    await showDialog({
      title: CATEGORY,
      body: `${why} ${remedy(situation, model.jobs.length)}`,
      buttons: [Dialog.okButton()]
    });
    return null;
  }
  if (names.length === 1) {
    return names[0];
  }
  return (await InputDialog.getItem({ title: 'Which job?', items: names })).value;
}

async function chooseSettings(
  args: ReadonlyPartialJSONObject,
  model: JobsModel,
  job: string
): Promise<Settings | null> {
  if (typeof args.settings === 'object' && args.settings !== null) {
    return args.settings as Settings;
  }
  const inForce = model.jobs.find(known => known.name === job)?.settings ?? {};
  const items = model.settings.filter(({ name }) => name in inForce && inForce[name] !== null);
  const title = (await InputDialog.getItem({ title: 'Which setting?', items: items.map(item => item.title) })).value;
  const setting = items.find(item => item.title === title);
  if (!setting) {
    return null;
  }
  const now = setting.values.indexOf(String(inForce[setting.name]));
  const asked = `New value of ${setting.title}, now ${inForce[setting.name]}`;
  const value = (await InputDialog.getItem({ title: asked, items: [...setting.values], current: Math.max(0, now) })).value;
  return value === null ? null : { [setting.name]: value };
}

async function chooseTask(args: ReadonlyPartialJSONObject, model: JobsModel, job: string): Promise<string | null> {
  if (typeof args.task === 'string') {
    return args.task;
  }
  const title = `Which task of ${job} should fail?`;
  const items = model.jobs.find(known => known.name === job)?.tasks ?? [];
  return (await InputDialog.getItem({ title, items: [...items], current: items.length - 1 })).value || null;
}

async function chooseName(args: ReadonlyPartialJSONObject, job: string): Promise<string | null> {
  if (typeof args.name === 'string') {
    return args.name;
  }
  const title = `Name of the savepoint of ${job}: letters, digits, '.', '-' and '_'`;
  const text = `savepoint-${new Date().toISOString().slice(0, 19).replace(/:/g, '')}`;
  return (await InputDialog.getText({ title, text })).value || null;
}
