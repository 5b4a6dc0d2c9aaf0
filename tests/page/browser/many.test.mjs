// The page of 64 GPUs. page_test.py starts the daemon and this file.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {axeFindsNothing, visit} from './visit.mjs';

test('a filter leaves the GPUs that have all of its words', async () => {
  await visit({}, async (page) => {
    await page.waitForSelector('tr.gpu');
    assert.equal(await page.locator('tr.gpu').count(), 64);
    const field = page.locator('#gpus input[type=search]');
    await field.fill('sim-1-63 OK');
    assert.equal(await page.locator('tr.gpu').count(), 1);
    assert.match(await page.locator('tr.gpu').innerText(), /^GPU 63/);
    assert.equal(await page.locator('#gpus .order .note').innerText(), '1 of 64');
    await field.fill('failed');
    assert.equal(await page.locator('tr.gpu').count(), 0);
    await field.fill('');
    assert.equal(await page.locator('tr.gpu').count(), 64);
  });
});

test('a phone sorts by a list, and axe finds no violation', async () => {
  await visit({viewport: {width: 390, height: 844}, bypassCSP: true}, async (page) => {
    await page.waitForSelector('tr.gpu');
    await page.locator('#gpus select').selectOption({label: 'gpu'});
    assert.match(await page.locator('tr.gpu').first().innerText(), /^GPU 63/);
    await axeFindsNothing(page);
  });
});
