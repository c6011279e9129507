/** What a page shows of a sentence. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';

import { Sentence, textOf } from '../src/sentences.ts';

const golden = JSON.parse(readFileSync(new URL('../../tests/support/golden/wire.json', import.meta.url), 'utf8'));
const shown = runs => renderToStaticMarkup(createElement(Sentence, { runs }));

test('numbers are set apart, and the text is that of the kernel', () => {
  const runs = ['latency ', { n: '50 ms' }, ', because aggregate[1] is slow'];
  assert.equal(shown(runs), 'latency <b class="wb-Figure">50 ms</b>, because aggregate[1] is slow');
  assert.equal(textOf(runs), 'latency 50 ms, because aggregate[1] is slow');
  assert.equal(textOf(null), '');
});

test('markup in a sentence is text', () => {
  for (const text of golden.hostile) {
    for (const runs of [[text], [{ n: text }]]) {
      const tags = shown(runs).match(/<[^>]*>/g) ?? [];
      assert.deepEqual(tags.filter(tag => !['<b class="wb-Figure">', '</b>'].includes(tag)), [], text);
    }
  }
});
