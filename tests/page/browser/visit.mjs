// Opens the page in a browser of its own, and fails if the page writes an error.
import assert from 'node:assert/strict';
import {chromium} from 'playwright-core';

const {PAGE_URL, PAGE_CHROMIUM} = process.env;

export async function visit(options, use) {
  const browser = await chromium.launch({executablePath: PAGE_CHROMIUM, args: ['--no-sandbox']});
  const wrong = [];
  try {
    const page = await (await browser.newContext(options)).newPage();
    page.on('console', (message) => message.type() === 'error' && wrong.push(message.text()));
    page.on('pageerror', (error) => wrong.push(String(error)));
    await page.goto(PAGE_URL);
    await use(page);
    assert.deepEqual(wrong, []);
  } finally {
    await browser.close();
  }
}
