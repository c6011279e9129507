/** When a view asks the kernel again, in every order in which cells, answers and telemetry can come. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Asking } from '../src/asking.ts';
import { RunningCell, VIEW_REQUEST, isOfCell, saysCellEnded } from '../src/cells.ts';

/** A view that has asked and was told that there is no such job. */
function missing() {
  const asking = new Asking();
  assert.equal(asking.answered(asking.begin(), false), false);
  return asking;
}

test('while there is no such job, each cell that ends is a reason to ask', () => {
  const asking = missing();
  assert.equal(asking.cellEnded(), true);
  assert.equal(asking.answered(asking.begin(), false), false);
  assert.equal(asking.cellEnded(), true);
  assert.equal(asking.answered(asking.begin(), true), false);
  assert.equal(asking.cellEnded(), false);
});

test('a cell that ends before the answer is here is not lost', () => {
  const asking = missing();
  const turn = asking.begin(); // the kernel looks, and there is no such job
  assert.equal(asking.cellEnded(), false); // the cell that has started it in the meantime
  assert.equal(asking.answered(turn, false), true);
  assert.equal(asking.answered(asking.begin(), true), false);
});

test('one reason makes it ask once more, not for ever', () => {
  const asking = missing();
  const turn = asking.begin();
  asking.cellEnded();
  asking.cellEnded();
  assert.equal(asking.answered(turn, false), true);
  assert.equal(asking.answered(asking.begin(), false), false);
});

test('a cell that ends before a good answer changes nothing', () => {
  const asking = missing();
  const turn = asking.begin();
  asking.cellEnded();
  assert.equal(asking.answered(turn, true), false);
});

test('a job that the kernel tells of is asked for before its cell ends, and once if it cannot be shown', () => {
  const asking = missing();
  assert.equal(asking.told(100), true);
  assert.equal(asking.answered(asking.begin(), false), false);
  assert.equal(asking.told(100), false);
});

test('a job that the kernel tells of before the answer is here is asked for again where the answer is no', () => {
  for (const found of [false, true]) {
    const asking = missing();
    const turn = asking.begin();
    assert.equal(asking.told(100), false);
    assert.equal(asking.answered(turn, found), !found);
  }
});

test('the view of an earlier run gives way, also where it is on its way', () => {
  const asking = new Asking();
  assert.equal(asking.answered(asking.begin(), true), false);
  assert.equal(asking.told(100), false); // the run that is shown
  assert.equal(asking.told(100), false);
  assert.equal(asking.told(200), true);
  const turn = asking.begin();
  assert.equal(asking.told(300), false);
  assert.equal(asking.answered(turn, true), true);
  assert.equal(asking.answered(asking.begin(), true), false);
});

test('after a restart what was asked before it is void, and the next cell is a reason', () => {
  const asking = new Asking();
  const before = asking.begin();
  asking.told(100);
  asking.lose();
  assert.equal(asking.isVoid(before), true);
  assert.equal(asking.answered(before, true), false);
  assert.equal(asking.cellEnded(), true);
  const turn = asking.begin();
  assert.equal(asking.isVoid(turn), false);
  assert.equal(asking.told(200), false);
  assert.equal(asking.answered(turn, true), false); // the run that is told of is the one that came
});

test('while the notebook is closed nothing is a reason to ask', () => {
  const asking = missing();
  const turn = asking.begin();
  asking.close();
  assert.equal(asking.answered(turn, false), false);
  assert.equal(asking.cellEnded(), false);
  assert.equal(asking.told(100), false);
});

function ended(parent, state = 'idle') {
  return {
    header: { msg_type: 'status' },
    parent_header: { msg_type: 'execute_request', msg_id: 'a', ...parent },
    content: { execution_state: state }
  };
}

test('a cell ends when the kernel is idle after it; views and subshells are no cells', () => {
  assert.equal(saysCellEnded(ended({})), true);
  assert.equal(saysCellEnded(ended({}, 'busy')), false);
  assert.equal(saysCellEnded(ended({ subshell_id: 'b' })), false);
  assert.equal(saysCellEnded(ended({ msg_id: `${VIEW_REQUEST}1` })), false);
  assert.equal(saysCellEnded(ended({ msg_type: 'kernel_info_request' })), false);
  assert.equal(saysCellEnded({ ...ended({}), parent_header: {} }), false);
  assert.equal(isOfCell({ header: { msg_type: 'execute_input' }, parent_header: ended({}).parent_header }), true);
});

const began = { header: { msg_type: 'execute_input' }, parent_header: { msg_type: 'execute_request', msg_id: 'a' }, content: {} };

test('a cell runs from when the kernel takes it until it has ended', () => {
  const cell = new RunningCell();
  assert.equal(cell.hear(ended({})), 'ended');
  assert.equal(cell.hear(began), 'began');
  for (const status of ['busy', 'unknown', 'idle']) {
    cell.see(status);
    assert.equal(cell.runs, true); // idle may be of a subshell, and an unknown kernel goes on
  }
  assert.equal(cell.hear(ended({ subshell_id: 'b' })), null);
  assert.equal(cell.runs, true);
  assert.equal(cell.hear(ended({})), 'ended');
  assert.equal(cell.runs, false);
});

test('a cell that a restart or the end of its kernel has cut short runs no more', () => {
  for (const status of ['restarting', 'autorestarting', 'starting', 'terminating', 'dead']) {
    const cell = new RunningCell();
    cell.hear(began);
    cell.see(status);
    cell.see('idle');
    assert.equal(cell.runs, false);
    cell.hear(began);
    assert.equal(cell.runs, true);
  }
});
