/** What the dashboard's scripts use of BokehJS, Panel and the pages that show it. */

interface Signal {
  connect(slot: () => void): void;
  emit(): void;
}

interface Model {
  readonly id: string;
  readonly document: any;
  active?: number;
  readonly acted?: Set<string>;
  readonly args?: any;
  readonly children?: Model[];
  readonly format?: any;
  readonly name: string | null;
  readonly properties: { [name: string]: { change: Signal } };
  readonly tags: Model[];
  value?: any;
  execute(object: Model): void;
  setv(values: object, options: { sync: boolean }): void;
}

interface Source extends Model {
  data: { [column: string]: any[] };
  readonly change: Signal;
  readonly patching: Signal;
  readonly properties: { data: { change: Signal } };
  readonly selected: { indices: number[] };
  columns(): string[];
  get_column(name: string): any[];
}

interface Buttons extends Model {
  active: number;
  readonly labels: string[];
  readonly properties: { active: { change: Signal } };
}

interface View {
  readonly el: HTMLElement;
  readonly is_displayed: boolean;
  readonly markup_el: HTMLElement | null;
  after_resize(): void;
}

interface Context {
  readonly index: { find_one(model: Model): View | null };
}

interface Window {
  Bokeh: any;
  PyViz: any;
  define: unknown;
  jupyterapp: any;
  notebook: any;
  workbench: { painted: { [view: string]: number }; bytes: number };
  workbench_bokeh?: Promise<void>;
  workbench_moving?: WeakMap<object, any>;
  workbench_plots?: Set<string>;
}
