/** Sentences of the kernel: runs of text with marked numbers. */

import * as React from 'react';

import type { Figure } from './wire';

export type Sentence = readonly (string | Figure)[];

/** The sentence without marks. */
export function textOf(sentence: Sentence | null): string {
  return (sentence ?? []).map(run => (typeof run === 'string' ? run : run.n)).join('');
}

/** The sentence with its numbers set apart. */
export function Sentence({ runs }: { runs: Sentence }): React.JSX.Element {
  return (
    <>
      {runs.map((run, index) =>
        typeof run === 'string' ? (
          run
        ) : (
          <b key={index} className="wb-Figure">
            {run.n}
          </b>
        )
      )}
    </>
  );
}
