import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';

import { streamIcon } from './icons';
import type { JobsModel } from './jobsModel';
import { statusLine } from './wording';

/** One line on the jobs of the active notebook; a click shows the list. */
export class JobsStatus extends ReactWidget {
  constructor(model: JobsModel, reveal: () => void) {
    super();
    this._model = model;
    this._reveal = reveal;
    this.addClass('wb-Status');
  }

  protected override render(): React.JSX.Element {
    return (
      <UseSignal signal={this._model.changed}>
        {() => {
          const line = statusLine(this._model.jobs);
          return (
            <button type="button" title={`${line.long}. Click for the list.`} aria-label={line.long} onClick={this._reveal}>
              <streamIcon.react tag="span" width="14px" height="14px" />
              {line.short}
            </button>
          );
        }}
      </UseSignal>
    );
  }

  private readonly _model: JobsModel;
  private readonly _reveal: () => void;
}
