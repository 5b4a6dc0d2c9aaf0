// The page of a machine without a GPU. page_test.py starts the daemon and this file.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {chromium} from 'playwright-core';

const {PAGE_URL, PAGE_CHROMIUM} = process.env;

test('a machine without a GPU reads what was tried and what to do', async () => {
  const browser = await chromium.launch({executablePath: PAGE_CHROMIUM, args: ['--no-sandbox']});
  try {
    const page = await browser.newPage();
    await page.goto(PAGE_URL);
    await page.waitForSelector('#unread li');
    assert.match(await page.locator('#unread').innerText(),
      /^No GPU is read\s+gpumeter found no GPU on the PCI bus\. Collectors that looked: amd, drm, .*\.\s[^]*gpumeter --simulate=4/);
    assert.equal(await page.locator('table:visible').count(), 0);
  } finally {
    await browser.close();
  }
});
