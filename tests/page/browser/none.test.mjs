// The page of a machine without a GPU. page_test.py starts the daemon and this file.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {visit} from './visit.mjs';

test('a machine without a GPU reads what was tried and what to do', async () => {
  await visit({}, async (page) => {
    await page.waitForSelector('#unread li');
    assert.match(await page.locator('#unread').innerText(),
      /^No GPU is read\s+gpumeter found no GPU on the PCI bus\. Collectors that looked: amd, drm, .*\.\s[^]*gpumeter --simulate=4/);
    assert.equal(await page.locator('table:visible').count(), 0);
  });
});
