// Generated from the dataclasses in `workbench/wire` by `make wire`.

export const VERSION = 1;
export const EVERY_JOB = '*';
export const FRAME_MAX = 8388608;
export const WHOLE_MAX = 9007199254740991;

export type ActName = 'hello' | 'tune' | 'pause' | 'resume' | 'checkpoint' | 'savepoint' | 'stop' | 'fail';

export interface Figure {
  readonly n: string;
}

export interface Latency {
  readonly p50_ms: number;
  readonly p95_ms: number;
  readonly p99_ms: number;
}

export interface Head {
  readonly state: string;
  readonly paused: boolean;
  readonly stepped: boolean;
  readonly started_us: number | string | null;
  readonly running_ms: number | null;
  readonly read: number;
  readonly received: number;
  readonly read_per_s: number | null;
  readonly received_per_s: number | null;
  readonly late: number | null;
  readonly restarts: number | null;
  readonly restart_due_us: number | string | null;
  readonly checkpoint: number | null;
  readonly checkpoints: number;
  readonly watermark_us: number | string | null;
  readonly lag_us: number | null;
  readonly position_us: number | string | null;
  readonly latency: Latency | null;
  readonly settings: { readonly [name: string]: string | number | null };
  readonly tables: { readonly [name: string]: number };
  readonly backpressure: readonly (string | Figure)[];
  readonly failure: readonly (string | Figure)[] | null;
  readonly change: readonly (string | Figure)[] | null;
  readonly interruption: readonly (string | Figure)[] | null;
  readonly connections: readonly (string | Figure)[] | null;
  readonly kept: readonly (string | Figure)[] | null;
  readonly roots: { readonly [name: string]: number } | null;
  readonly tasks: readonly string[];
}

export interface View {
  readonly name: string;
  readonly title: string;
  readonly help: string;
}

export interface Choices {
  readonly name: string;
  readonly title: string;
  readonly values: readonly string[];
}

export interface Hello {
  readonly jobs: readonly string[];
  readonly docks: readonly string[];
  readonly views: readonly View[];
  readonly settings: readonly Choices[];
}

export interface Reply {
  readonly id: string;
  readonly ok: boolean;
  readonly text: string;
  readonly data: Hello | null;
}

export interface Open {
  readonly docks: boolean;
}

export interface See {
  readonly sections: { readonly [name: string]: { readonly [name: string]: number } };
  readonly comm: string;
}

export interface Act {
  readonly id: string;
  readonly name: string;
  readonly job: string;
  readonly args: { readonly [name: string]: unknown };
}

/** What values are compared with. */
export const SHAPES = {
  Figure: {
    n: "string",
  },
  Latency: {
    p50_ms: "number",
    p95_ms: "number",
    p99_ms: "number",
  },
  Head: {
    state: "string",
    paused: "boolean",
    stepped: "boolean",
    started_us: {"any": ["number", "string", "null"]},
    running_ms: {"any": ["number", "null"]},
    read: "number",
    received: "number",
    read_per_s: {"any": ["number", "null"]},
    received_per_s: {"any": ["number", "null"]},
    late: {"any": ["number", "null"]},
    restarts: {"any": ["number", "null"]},
    restart_due_us: {"any": ["number", "string", "null"]},
    checkpoint: {"any": ["number", "null"]},
    checkpoints: "number",
    watermark_us: {"any": ["number", "string", "null"]},
    lag_us: {"any": ["number", "null"]},
    position_us: {"any": ["number", "string", "null"]},
    latency: {"any": [{"object": "Latency"}, "null"]},
    settings: {"map": {"any": ["string", "number", "null"]}},
    tables: {"map": "number"},
    backpressure: {"list": {"any": ["string", {"object": "Figure"}]}},
    failure: {"any": [{"list": {"any": ["string", {"object": "Figure"}]}}, "null"]},
    change: {"any": [{"list": {"any": ["string", {"object": "Figure"}]}}, "null"]},
    interruption: {"any": [{"list": {"any": ["string", {"object": "Figure"}]}}, "null"]},
    connections: {"any": [{"list": {"any": ["string", {"object": "Figure"}]}}, "null"]},
    kept: {"any": [{"list": {"any": ["string", {"object": "Figure"}]}}, "null"]},
    roots: {"any": [{"map": "number"}, "null"]},
    tasks: {"list": "string"},
  },
  View: {
    name: "string",
    title: "string",
    help: "string",
  },
  Choices: {
    name: "string",
    title: "string",
    values: {"list": "string"},
  },
  Hello: {
    jobs: {"list": "string"},
    docks: {"list": "string"},
    views: {"list": {"object": "View"}},
    settings: {"list": {"object": "Choices"}},
  },
  Reply: {
    id: "string",
    ok: "boolean",
    text: "string",
    data: {"any": [{"object": "Hello"}, "null"]},
  },
} as const;
