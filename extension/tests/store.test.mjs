/** What a page makes of the golden messages, which the kernel's tests read too. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { CONTROL_TARGET, TELEMETRY_TARGET, actMessage, openMessage, replyOf, seeMessage } from '../src/asks.ts';
import { WireError } from '../src/checked.ts';
import { Store } from '../src/store.ts';
import { FRAME_MAX, SHAPES, VERSION, WHOLE_MAX } from '../src/wire.ts';

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
  assert.deepEqual(openMessage(true), golden.open);
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

test('a store is complete when the head of each job is known', () => {
  const [hello, first, second] = golden.told;
  assert.equal(new Store().isComplete, false);
  assert.equal(told([{ ...hello, jobs: [] }]).isComplete, true);
  assert.equal(told([hello, first]).isComplete, false);
  assert.equal(told([hello, first, second]).isComplete, true);
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
  assert.deepEqual(store.jobs, golden.jobs);
});

test('another version is refused with what to install', () => {
  for (const v of [undefined, null, 0, VERSION + 1, '1']) {
    for (const take of [message => new Store().take(message), replyOf]) {
      assert.throws(() => take({ ...golden.told[0], v }), /^Error: the kernel speaks version .* of the workbench's wire, this page version 1: install matching/);
    }
  }
});

test('a field of a section of another type is refused, whole or as a patch', () => {
  const [, whole] = golden.told;
  const store = told(golden.told.slice(0, 2));
  const take = (name, value, base) => store.take({ ...whole, base, head: { ...whole.head, [name]: value } });
  const examples = { string: 'x', number: 1, boolean: true, null: null, list: [], object: {} };
  const numbers = [NaN, Infinity, -Infinity, 2 ** 53, -(2 ** 53), 2 ** 63];
  for (const [name, shape] of Object.entries(SHAPES.Head)) {
    const kinds = kindsOf(shape);
    for (const base of [null, 0]) {
      for (const [kind, value] of Object.entries(examples)) {
        if (!kinds.includes(kind)) {
          assert.throws(() => take(name, value, base), new RegExp(`the head of delays\\.${name} `), `${name}: ${kind}`);
        }
      }
      for (const number of kinds.includes('number') ? numbers : []) {
        assert.throws(() => take(name, number, base), new RegExp(`the head of delays\\.${name} .*${number}$`));
      }
    }
  }
  store.take({ ...whole, head: { ...whole.head, read: WHOLE_MAX } });
  assert.equal(store.jobs[0].read, WHOLE_MAX);
});

/** The kinds of JSON values that fit a shape. */
function kindsOf(shape) {
  if (typeof shape === 'string') {
    return [shape];
  }
  return shape.any?.flatMap(kindsOf) ?? ['list' in shape ? 'list' : 'object'];
}

test('a frame of more than 8 MB is refused', () => {
  const [hello, whole] = golden.told;
  const frame = letters => ({ ...whole, head: { ...whole.head, backpressure: ['x'.repeat(letters)] } });
  const others = JSON.stringify(frame(0)).length;
  assert.equal(told([hello, frame(FRAME_MAX - others)]).jobs.length, 1);
  assert.throws(() => told([hello, frame(FRAME_MAX - others + 1)]), /the kernel sent a frame of delays with more than 8 MB/);
});

test('names, values and sentences with markup stay text, wherever they are', () => {
  const [hello, whole] = golden.told;
  let count = 0;
  for (const text of golden.hostile) {
    for (const [name, shape] of Object.entries(SHAPES.Head)) {
      for (const value of withText(shape, text)) {
        const head = { ...whole.head, [name]: value };
        const [job] = told([{ ...hello, jobs: [text] }, { ...whole, job: text, head }]).jobs;
        assert.equal(job.name, text);
        assert.deepEqual(job[name], value);
        count++;
      }
    }
  }
  assert.equal(count, 15 * golden.hostile.length);
});

/** Values of a shape that are made of a text, or named by it. */
function withText(shape, text) {
  if (shape === 'string') {
    return [text];
  }
  if (shape.list) {
    return [withText(shape.list, text)];
  }
  if (shape.map) {
    return [Object.fromEntries([[text, withText(shape.map, text)[0] ?? 7]])];
  }
  return shape.object === 'Figure' ? [{ n: text }] : (shape.any?.flatMap(each => withText(each, text)) ?? []);
}

test('replies are read', () => {
  for (const reply of golden.replies) {
    const { v: _v, type: _type, ...content } = reply;
    assert.deepEqual(replyOf(reply), content);
  }
  assert.throws(() => replyOf({ v: VERSION, type: 'reply', ok: true, text: '' }), /a reply without 'id'/);
});
