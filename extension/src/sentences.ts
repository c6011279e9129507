/** Sentences of the kernel: runs of text with marked numbers. */

import * as React from 'react';

import type { Figure } from './wire.ts';

export type Runs = readonly (string | Figure)[];

/** The sentence without marks. */
export function textOf(runs: Runs | null): string {
  return (runs ?? []).map(run => (typeof run === 'string' ? run : run.n)).join('');
}

/** The sentence with its numbers set apart. */
export function Sentence({ runs }: { runs: Runs }): React.JSX.Element {
  const figure = ({ n }: Figure) => React.createElement('b', { className: 'wb-Figure' }, n);
  const parts = runs.map(run => (typeof run === 'string' ? run : figure(run)));
  return React.createElement(React.Fragment, null, ...parts);
}
