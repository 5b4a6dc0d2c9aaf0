// Opens the page in a browser of its own, and fails if the page writes an error.
import assert from 'node:assert/strict';
import axe from 'axe-core';
import {chromium} from 'playwright-core';

const {PAGE_URL, PAGE_CHROMIUM} = process.env;

export const launch = () => chromium.launch({executablePath: PAGE_CHROMIUM, args: ['--no-sandbox']});

export async function visit(options, use) {
  const browser = await launch();
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

/** The page's context bypasses its policy, which forbids scripts of others. */
export async function axeFindsNothing(page, ...rules) {
  await page.evaluate(axe.source);
  const found = await page.evaluate((only) => window.axe.run(only.length ? {runOnly: only} : {}), rules);
  assert.deepEqual(found.violations.map(({id, nodes}) => [id, nodes.map((node) => node.target.join(' '))]), []);
  assert.ok(found.passes.length > 0);
}
