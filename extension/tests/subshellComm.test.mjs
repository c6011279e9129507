/** When a comm is closed, with a JupyterLab that gives it a subshell sooner or later. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { SubshellComm } from '../src/subshellComm.ts';

/** A kernel with subshells, and what became of its comm; `start` and `fail` settle the start of the comm's subshell. */
function kernel(options = {}) {
  const events = [];
  const made = { supportsSubshells: true, isDisposed: false, status: 'idle', events, ...options };
  const subshellStarted = new Promise((resolve, reject) => Object.assign(made, { start: resolve, fail: reject }));
  made.createComm = target => {
    const comm = { target, subshellStarted, isDisposed: false, commsOverSubshells: 'perCommTarget' };
    const end = event => () => {
      events.push(event);
      comm.isDisposed = true;
    };
    return Object.assign(comm, { open: () => events.push('open'), close: end('close'), dispose: end('dispose') });
  };
  return made;
}

const settled = () => new Promise(resolve => setImmediate(resolve));

test('a comm that is given up while its subshell starts stays until it has started', async () => {
  for (const end of ['start', 'fail']) {
    const asked = kernel();
    new SubshellComm(asked, 'a').close();
    await settled();
    assert.deepEqual(asked.events, []);
    asked[end]();
    await settled();
    assert.deepEqual(asked.events, ['dispose']);
  }
});

test('a comm that was opened before its subshell has started is closed when it has, and hears nothing from then on', async () => {
  const asked = kernel();
  const made = new SubshellComm(asked, 'a');
  made.comm.onMsg = made.comm.onClose = () => asked.events.push('heard');
  made.open({ version: 1 });
  made.close();
  made.comm.onMsg();
  made.comm.onClose();
  await settled();
  assert.deepEqual(asked.events, ['open']);
  asked.start();
  await settled();
  assert.deepEqual(asked.events, ['open', 'close']);
});

test('once the subshell has started a comm is closed at once, as one is that needs none', async () => {
  for (const options of [{}, { supportsSubshells: false }]) {
    const asked = kernel(options);
    const made = new SubshellComm(asked, 'a');
    asked.start();
    await made.ready();
    made.open({ version: 1 });
    made.close();
    assert.deepEqual(asked.events, ['open', 'close']);
  }
});

test('a kernel that does not know the comm, or is gone, is not told that it is closed', async () => {
  for (const [options, end] of [[{}, 'abandon'], [{ isDisposed: true }, 'close'], [{ status: 'dead' }, 'close']]) {
    const asked = kernel({ supportsSubshells: false, ...options });
    const made = new SubshellComm(asked, 'a');
    made.open({ version: 1 });
    made[end]();
    made.close();
    assert.deepEqual(asked.events, ['open', 'dispose']);
  }
});
