import {
  LabIcon,
  ReactWidget,
  UseSignal,
  caretDownEmptyIcon,
  checkIcon,
  pauseIcon,
  runIcon,
  stopIcon
} from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { Message } from '@lumino/messaging';
import { Menu } from '@lumino/widgets';
import * as React from 'react';

import { CommandIDs } from './commands';
import { dashboardIcon, streamIcon } from './icons';
import type { JobsModel } from './jobsModel';
import { Sentence } from './sentences';
import type { JobHead } from './store';
import { count, duration, explanation, isOver, remedy, runningTime, stateLabel } from './wording';

/** The list of jobs in the left area; it listens to the kernel only while it is visible. */
export class JobsSidebar extends ReactWidget {
  constructor(model: JobsModel, commands: CommandRegistry) {
    super();
    this._model = model;
    this._commands = commands;
    this._views = new Menu({ commands });
    this.id = 'workbench-jobs';
    this.addClass('wb-Sidebar');
    this.title.icon = streamIcon;
    this.title.caption = 'Streaming jobs';
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', 'Streaming jobs of the active notebook');
  }

  protected override render(): React.JSX.Element {
    return (
      <UseSignal signal={this._model.changed}>
        {() => (
          <Jobs
            model={this._model}
            run={(id, job) => void this._commands.execute(id, { job })}
            choose={(job, button) => this._chooseView(job, button)}
          />
        )}
      </UseSignal>
    );
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this._model.watch(this, true);
  }

  protected override onAfterAttach(message: Message): void {
    super.onAfterAttach(message);
    this._model.watch(this, this.isVisible);
  }

  protected override onAfterHide(message: Message): void {
    super.onAfterHide(message);
    this._model.watch(this, false);
  }

  override dispose(): void {
    this._views.dispose();
    super.dispose();
  }

  /** Open the list of views below its button, which gets the focus back. */
  private _chooseView(job: string, button: HTMLElement): void {
    const menu = this._views;
    menu.clearItems();
    for (const { name: view } of this._model.views) {
      menu.addItem({ command: CommandIDs.openView, args: { job, view } });
    }
    const { left, bottom } = button.getBoundingClientRect();
    menu.open(left, bottom);
    menu.activateNextItem();
    const closed = () => {
      menu.aboutToClose.disconnect(closed);
      button.focus();
    };
    menu.aboutToClose.connect(closed);
  }

  private readonly _model: JobsModel;
  private readonly _commands: CommandRegistry;
  private readonly _views: Menu;
}

type Run = (command: string, job: string) => void;

/** Lets the person choose a view of the job from a list below the button. */
type Choose = (job: string, button: HTMLElement) => void;

function Jobs({ model, run, choose }: { model: JobsModel; run: Run; choose: Choose }): React.JSX.Element {
  const { situation, jobs } = model;
  const why = explanation(situation, jobs.length);
  const line = remedy(situation, jobs.length);
  return (
    <>
      <header className="wb-Sidebar-header">
        <h2>Streaming jobs</h2>
        {model.notebook && <span title={model.notebook.context.path}>{model.notebook.title.label}</span>}
      </header>
      {model.refusal && (
        <div className="wb-Notice wb-mod-refusal" role="alert">
          <span>{model.refusal}</span>
          <button type="button" aria-label="Dismiss this message" onClick={() => model.dismissRefusal()}>
            ×
          </button>
        </div>
      )}
      {why ? (
        <div className="wb-Explanation" role="status" data-situation={situation}>
          <p>{why}</p>
          {line && <code>{line}</code>}
          {situation === 'failed' && (
            <>
              <p className="wb-mod-failure">{model.failure}</p>
              <button type="button" className="jp-mod-styled jp-mod-minimal" onClick={() => model.reconnect()}>
                Try again
              </button>
            </>
          )}
        </div>
      ) : (
        <ul className="wb-JobList" aria-label="Jobs">
          {jobs.map(job => (
            <Job key={job.name} job={job} run={run} choose={choose} />
          ))}
        </ul>
      )}
    </>
  );
}

function Job({ job, run, choose }: { job: JobHead; run: Run; choose: Choose }): React.JSX.Element {
  const over = isOver(job);
  return (
    <li className="wb-Job" data-job={job.name} data-state={job.state} aria-label={`Job ${job.name}`}>
      <div className="wb-Job-title">
        <span className="wb-Job-name" title={job.name}>
          {job.name}
        </span>
        <span className="wb-Badge" data-state={stateLabel(job)}>
          {stateLabel(job)}
        </span>
      </div>
      <dl className="wb-Job-facts">
        <Fact name="in" value={`${count(job.read_per_s)}/s`} title="Records per second read by the sources" />
        <Fact name="out" value={`${count(job.received_per_s)}/s`} title="Records per second received by the sinks" />
        <Fact
          name="event-time lag"
          value={duration(job.lag_us)}
          title="How far event time at the sinks is behind the furthest watermark of the job"
        />
        <Fact name="checkpoint" value={job.checkpoint} title="lastCompletedCheckpointId" />
        <Fact name="late" value={count(job.late)} title="numLateRecordsDropped" />
        <Fact name="restarts" value={job.restarts} title="numRestarts" />
        <Fact name="running" value={runningTime(job.running_ms)} title="runningTime" />
      </dl>
      {job.backpressure.length > 0 && (
        <p className="wb-Job-sentence">
          <Sentence runs={job.backpressure} />
        </p>
      )}
      {job.failure && (
        <p className="wb-Job-sentence wb-mod-failure">
          <Sentence runs={job.failure} />
        </p>
      )}
      <div className="wb-Job-actions" role="group" aria-label={`Actions on ${job.name}`}>
        {job.paused ? (
          <Action icon={runIcon} text="Resume" label="Resume" job={job} disabled={over} onClick={() => run(CommandIDs.resume, job.name)} />
        ) : (
          <Action icon={pauseIcon} text="Pause" label="Pause" job={job} disabled={over} onClick={() => run(CommandIDs.pause, job.name)} />
        )}
        <Action
          icon={checkIcon}
          text="Checkpoint"
          label="Take a checkpoint of"
          job={job}
          disabled={over}
          onClick={() => run(CommandIDs.checkpoint, job.name)}
        />
        <Action icon={stopIcon} text="Stop" label="Stop" job={job} disabled={over} onClick={() => run(CommandIDs.stop, job.name)} />
        <button
          type="button"
          className="wb-Job-open"
          title={`Open the dashboard of ${job.name} beside the notebook`}
          aria-label={`Open the dashboard of ${job.name}`}
          onClick={() => run(CommandIDs.openDashboard, job.name)}
        >
          <dashboardIcon.react tag="span" width="16px" height="16px" />
          Dashboard
        </button>
        <button
          type="button"
          title={`Open one view of ${job.name} beside the notebook`}
          aria-label={`Open a view of ${job.name}`}
          aria-haspopup="menu"
          onClick={event => choose(job.name, event.currentTarget)}
        >
          View…
          <caretDownEmptyIcon.react tag="span" width="14px" height="14px" />
        </button>
      </div>
    </li>
  );
}

function Fact(fact: { name: string; value: string | number | null; title: string }): React.JSX.Element {
  return (
    <div title={fact.title}>
      <dt>{fact.name}</dt>
      <dd>{fact.value ?? '–'}</dd>
    </div>
  );
}

function Action(action: {
  icon: LabIcon;
  text: string;
  label: string;
  job: JobHead;
  disabled: boolean;
  onClick: () => void;
}): React.JSX.Element {
  const label = `${action.label} ${action.job.name}`;
  return (
    <button type="button" title={label} aria-label={label} disabled={action.disabled} onClick={action.onClick}>
      <action.icon.react tag="span" width="16px" height="16px" />
      {action.text}
    </button>
  );
}
