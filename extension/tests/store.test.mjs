/** What a page makes of the golden messages, which the kernel's tests read too. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { CONTROL_TARGET, TELEMETRY_TARGET, actMessage, replyOf, seeMessage } from '../src/asks.ts';
import { WireError } from '../src/checked.ts';
import { Store } from '../src/store.ts';
import { VERSION } from '../src/wire.ts';

const golden = JSON.parse(readFileSync(new URL('../../tests/support/golden/wire.json', import.meta.url), 'utf8'));

/** A store that has been told all of that. */
function told(messages) {
  const store = new Store();
  for (const message of messages) {
    assert.equal(store.take(message), true);
  }
  return store;
}

test('version, targets and what is asked are those that the kernel expects', () => {
  assert.equal(VERSION, golden.version);
  assert.deepEqual({ control: CONTROL_TARGET, telemetry: TELEMETRY_TARGET }, golden.targets);
  assert.deepEqual(seeMessage('7'), golden.see);
  for (const act of golden.acts) {
    const { id, name, job, args } = act;
    assert.deepEqual(actMessage(id, { name, job, args }), act);
  }
});

test('the heads of jobs are read without loss, and patched', () => {
  const store = told(golden.told);
  assert.deepEqual(store.jobs, golden.jobs);
  assert.deepEqual(store.hello.views, golden.told[0].views);
  assert.deepEqual(store.hello.settings, golden.told[0].settings);
});

test('a patch of a frame that is not here asks for a whole one, and changes nothing', () => {
  const [hello, whole, , patch] = golden.told;
  assert.equal(told([hello]).take(patch), false);
  const store = told([hello, whole]);
  assert.equal(store.take({ ...patch, base: 7 }), false);
  assert.equal(store.jobs[0].state, 'RUNNING');
});

test('a job that is gone is forgotten, and another run of its name comes whole', () => {
  const [hello, whole, , patch] = golden.told;
  const store = told([hello, whole, { ...hello, jobs: [] }]);
  assert.deepEqual(store.jobs, []);
  store.take(hello);
  assert.deepEqual(store.jobs, []);
  assert.equal(store.take(patch), false);
});

test('a message that cannot be trusted is refused in a sentence, and what was known stays', () => {
  const store = told(golden.told);
  for (const { why, message } of golden.malformed) {
    assert.throws(() => store.take(message), error => error instanceof WireError && /^the kernel /.test(error.message), why);
  }
  for (const number of [NaN, Infinity, 2 ** 53 + 2]) {
    const head = { ...golden.told[1].head, read: number };
    assert.throws(() => store.take({ ...golden.told[1], head }), /head of delays\.read that is not a number/);
  }
  const long = { ...golden.told[1].head, backpressure: ['x'.repeat(9 * 2 ** 20)] };
  assert.throws(() => store.take({ ...golden.told[1], head: long }), /more than 8 MB/);
  assert.deepEqual(store.jobs, golden.jobs);
});

test('names, values and sentences with markup stay text', () => {
  const name = '<img src=x onerror=alert(1)>';
  const [hello, whole] = golden.told;
  const head = { ...whole.head, backpressure: [name, { n: name }], settings: { [name]: name } };
  const [job] = told([{ ...hello, jobs: [name] }, { ...whole, job: name, head }]).jobs;
  assert.equal(job.name, name);
  assert.deepEqual(job.backpressure, [name, { n: name }]);
  assert.deepEqual(job.settings, { [name]: name });
});

test('a setting named like a part of each object is a setting', () => {
  const [hello, whole] = golden.told;
  const head = { ...whole.head, settings: JSON.parse('{"__proto__": "1", "constructor": "2"}') };
  const [job] = told([hello, { ...whole, head }]).jobs;
  assert.deepEqual(Object.keys(job.settings), ['__proto__', 'constructor']);
});

test('replies are read', () => {
  for (const reply of golden.replies) {
    const { v: _v, type: _type, ...content } = reply;
    assert.deepEqual(replyOf(reply), content);
  }
  assert.throws(() => replyOf({ v: VERSION, type: 'reply', ok: true, text: '' }), /without its id/);
});
