/** The front end's side of the protocol against the golden messages that the kernel's tests read too. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import * as protocol from '../src/protocol.ts';

const golden = JSON.parse(
  readFileSync(new URL('../../tests/support/golden/comm-protocol.json', import.meta.url), 'utf8')
);

test('version and targets are those of the kernel', () => {
  assert.equal(protocol.PROTOCOL_VERSION, golden.version);
  assert.equal(protocol.CONTROL_TARGET, golden.targets.control);
  assert.equal(protocol.TELEMETRY_TARGET, golden.targets.telemetry);
});

test('each request is built as the kernel expects it', () => {
  for (const { version: _, id, ...request } of golden.requests) {
    assert.deepEqual(
      protocol.requestMessage(id, request),
      golden.requests.find(known => known.id === id)
    );
  }
});

test('telemetry is read without loss', () => {
  for (const message of golden.telemetry) {
    assert.deepEqual(protocol.parseTelemetry(message), { jobs: message.jobs, settings: message.settings, views: message.views });
  }
});

test('replies are read', () => {
  for (const { version: _, ...reply } of golden.replies) {
    assert.deepEqual(protocol.parseReply({ version: golden.version, ...reply }), reply);
  }
});

test('a message that cannot be trusted is refused in a sentence', () => {
  for (const { why, message } of golden.malformed) {
    assert.throws(() => protocol.parseTelemetry(message), protocol.ProtocolError, why);
  }
  assert.throws(() => protocol.parseReply({ version: golden.version, ok: true, jobs: [], settings: [], views: [] }), /'id' that is not a text/);
});
