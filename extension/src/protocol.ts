/**
 * What the kernel and this front end say to each other; the twin of `workbench/jupyter/protocol.py`.
 *
 * `tests/support/golden/comm-protocol.json` holds an example of each message, and the tests of both sides read it.
 */

export const PROTOCOL_VERSION = 1;
export const CONTROL_TARGET = 'workbench:control';
export const TELEMETRY_TARGET = 'workbench:telemetry';

export type Setting = string | number | null;
export type Settings = { [name: string]: Setting };

/** What may be asked of a kernel. */
export type Request =
  | { request: 'list' }
  | { request: 'tune'; job: string; settings: Settings }
  | { request: 'pause' | 'resume' | 'checkpoint' | 'stop'; job: string }
  | { request: 'savepoint'; job: string; name: string }
  | { request: 'fail'; job: string; task: string };

/** A request as it is sent. */
export type RequestMessage = Request & { version: number; id: string };

/** One job in one line. Metrics have Flink's names and are null until they are known. */
export interface JobSummary {
  name: string;
  /** A job state, or `UNKNOWN` where the job could not be read. */
  state: string;
  /** Its sources read nothing until it is resumed. */
  paused: boolean;
  /** Microseconds since 1970. */
  started_us: number | null;
  /** Milliseconds. */
  runningTime: number | null;
  numRecordsInPerSecond: number | null;
  numRecordsOutPerSecond: number | null;
  numLateRecordsDropped: number | null;
  numRestarts: number | null;
  lastCompletedCheckpointId: number | null;
  /** Microseconds. */
  eventTimeLag: number | null;
  /** One sentence, or empty. */
  backpressure: string;
  settings: Settings;
  failure: string | null;
  /** The cell that started it asks for its dashboard beside the notebook. */
  dock: boolean;
  /** It advances only when somebody takes its steps. */
  stepped: boolean;
  /** Names of its tasks, of which each can be failed. */
  tasks: string[];
}

/** A view that each job has. */
export interface ViewInfo {
  name: string;
  title: string;
  /** What it shows, in one sentence. */
  help: string;
}

/** A setting of a running job that has usual values. */
export interface SettingInfo {
  name: string;
  title: string;
  values: string[];
}

/** What a kernel tells of itself. */
export interface Report {
  jobs: JobSummary[];
  settings: SettingInfo[];
  /** In the order of menus. */
  views: ViewInfo[];
}

export type Reply = ({ id: string; ok: true } & Report) | { id: string; ok: false; error: string };

/** A message that this side of the protocol does not understand. */
export class ProtocolError extends Error {}

/** The message that asks for something. */
export function requestMessage(id: string, request: Request): RequestMessage {
  return { version: PROTOCOL_VERSION, id, ...request };
}

/** A message of the telemetry comm. */
export function parseTelemetry(message: unknown): Report {
  return parseReport(versioned(message));
}

/** A message of the control comm. */
export function parseReply(message: unknown): Reply {
  const reply = versioned(message);
  const id = text(reply, 'id');
  return reply.ok === true
    ? { id, ok: true, ...parseReport(reply) }
    : { id, ok: false, error: text(reply, 'error') };
}

type Fields = { [key: string]: unknown };

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function versioned(message: unknown): Fields {
  if (!isFields(message)) {
    throw new ProtocolError('the kernel sent a message that is not a JSON object');
  }
  if (message.version !== PROTOCOL_VERSION) {
    throw new ProtocolError(
      `the kernel speaks version ${String(message.version)} of the workbench protocol, this page version ` +
        `${PROTOCOL_VERSION}: install matching streaming-workbench and workbench-jupyterlab, then reload the page`
    );
  }
  return message;
}

function parseReport(message: Fields): Report {
  return {
    jobs: list(message, 'jobs').map(parseJob),
    settings: list(message, 'settings').map(parseSetting),
    views: list(message, 'views').map(parseView)
  };
}

function list(message: Fields, key: string): Fields[] {
  const items = message[key];
  if (!Array.isArray(items) || !items.every(isFields)) {
    throw new ProtocolError(`the kernel sent a message without a list of '${key}', each a JSON object`);
  }
  return items;
}

function parseView(view: Fields): ViewInfo {
  return { name: text(view, 'name'), title: text(view, 'title'), help: text(view, 'help') };
}

function parseSetting(setting: Fields): SettingInfo {
  return { name: text(setting, 'name'), title: text(setting, 'title'), values: texts(setting, 'values') };
}

function parseJob(job: Fields): JobSummary {
  return {
    name: text(job, 'name'),
    state: text(job, 'state'),
    paused: job.paused === true,
    started_us: numberOrNull(job, 'started_us'),
    runningTime: numberOrNull(job, 'runningTime'),
    numRecordsInPerSecond: numberOrNull(job, 'numRecordsInPerSecond'),
    numRecordsOutPerSecond: numberOrNull(job, 'numRecordsOutPerSecond'),
    numLateRecordsDropped: numberOrNull(job, 'numLateRecordsDropped'),
    numRestarts: numberOrNull(job, 'numRestarts'),
    lastCompletedCheckpointId: numberOrNull(job, 'lastCompletedCheckpointId'),
    eventTimeLag: numberOrNull(job, 'eventTimeLag'),
    backpressure: text(job, 'backpressure'),
    settings: parseSettings(job.settings),
    failure: job.failure === null ? null : text(job, 'failure'),
    dock: job.dock === true,
    stepped: job.stepped === true,
    tasks: texts(job, 'tasks')
  };
}

function parseSettings(value: unknown): Settings {
  if (!isFields(value)) {
    throw new ProtocolError("the kernel sent 'settings' that are not a JSON object");
  }
  const settings: Settings = {};
  for (const [name, setting] of Object.entries(value)) {
    if (setting !== null && typeof setting !== 'string' && typeof setting !== 'number') {
      throw new ProtocolError(`the kernel sent setting '${name}' that is neither text nor number`);
    }
    settings[name] = setting;
  }
  return settings;
}

function text(fields: Fields, key: string): string {
  const value = fields[key];
  if (typeof value !== 'string') {
    throw new ProtocolError(`the kernel sent '${key}' that is not a text: ${JSON.stringify(value)}`);
  }
  return value;
}

function texts(fields: Fields, key: string): string[] {
  const value = fields[key];
  if (!Array.isArray(value) || !value.every(item => typeof item === 'string')) {
    throw new ProtocolError(`the kernel sent '${key}' that is not a list of texts: ${JSON.stringify(value)}`);
  }
  return value;
}

function numberOrNull(fields: Fields, key: string): number | null {
  const value = fields[key];
  if (value !== null && typeof value !== 'number') {
    throw new ProtocolError(`the kernel sent '${key}' that is not a number: ${JSON.stringify(value)}`);
  }
  return value;
}
