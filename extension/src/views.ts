/** The views of a job that can be shown by themselves; the kernel's tests compare the names with its own. */
export const VIEWS: { [name: string]: string } = {
  graph: 'Graph',
  buffers: 'Buffers',
  watermarks: 'Watermarks',
  checkpoints: 'Checkpoints',
  latency: 'Latency and Throughput',
  state: 'State',
  sink: 'Sink',
  events: 'Events'
};

/** The code whose result is one view of a job, or its whole dashboard where none is named. */
export function displayCode(job: string, view: string): string {
  // A JSON string is a Python string too, whatever the names hold.
  const shown = view ? `view(${JSON.stringify(view)})` : 'dashboard()';
  return `import workbench as _wb; _wb.job(${JSON.stringify(job)}).${shown}`;
}
