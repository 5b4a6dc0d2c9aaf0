// The page of a machine whose only GPU is on the bus and has no driver. page_test.py starts the daemon and this file.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {axeFindsNothing, visit} from './visit.mjs';

test('a GPU that nobody reads has its reason and the remedy, with no GPU that is read', async () => {
  await visit({}, async (page) => {
    await page.waitForSelector('#unread .devices li');
    assert.equal(await page.locator('#summary').innerText(), 'No GPU is read.');
    assert.equal(await page.locator('tr.gpu').count(), 0);
    assert.equal(await page.locator('#unread .devices li').count(), 1);
    assert.equal(await page.locator('#unread .devices li').innerText(),
      '0000:0c:00.0 amd 1002:73bf (no driver): no driver is bound to it: the kernel module amdgpu is not loaded. '
      + 'What helps: modprobe amdgpu; if there is no such module, install the driver.');
  });
});

test('axe finds no violation, and nothing is wider than a phone', async () => {
  await visit({viewport: {width: 390, height: 844}, bypassCSP: true}, async (page) => {
    await page.waitForSelector('#unread .devices li');
    await axeFindsNothing(page);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth), false);
  });
});

test('a page without JavaScript lists it too', async () => {
  await visit({javaScriptEnabled: false}, async (page) => {
    assert.match(await page.locator('#static').innerText(), /0000:0c:00\.0 amd 1002:73bf \(no driver\): .*modprobe amdgpu/);
  });
});
