/**
 * The code that displays one view of a job, or its whole dashboard where none is named; it leaves no name in the kernel.
 *
 * It is displayed, and is not the result of the code: the kernel keeps results in one place while it sends them, so that of
 * two that are executed at a time (on subshells, or beside a cell) one would be shown in the other's place.
 */
export function displayCode(job: string, view: string): string {
  // A JSON string is a Python string too, whatever the names hold.
  const shown = view ? `view(${JSON.stringify(view)})` : 'dashboard()';
  return `__import__("IPython").display.display(__import__("workbench").job(${JSON.stringify(job)}).${shown})`;
}
