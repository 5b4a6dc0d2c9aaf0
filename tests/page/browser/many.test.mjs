// The page of 64 GPUs. page_test.py starts the daemon and this file.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import axe from 'axe-core';
import {chromium} from 'playwright-core';

const {PAGE_URL, PAGE_CHROMIUM} = process.env;

async function visit(options, use) {
  const browser = await chromium.launch({executablePath: PAGE_CHROMIUM, args: ['--no-sandbox']});
  try {
    const page = await (await browser.newContext(options)).newPage();
    await page.goto(PAGE_URL);
    await page.waitForSelector('tr.gpu');
    await use(page);
  } finally {
    await browser.close();
  }
}

test('a filter leaves the GPUs that have all of its words', async () => {
  await visit({}, async (page) => {
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
    await page.locator('#gpus select').selectOption({label: 'gpu'});
    assert.match(await page.locator('tr.gpu').first().innerText(), /^GPU 63/);
    await page.evaluate(axe.source);
    const found = await page.evaluate(() => window.axe.run());
    assert.deepEqual(found.violations.map(({id, nodes}) => [id, nodes.map((node) => node.target.join(' '))]), []);
  });
});
