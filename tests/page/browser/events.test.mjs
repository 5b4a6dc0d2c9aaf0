// The page of a machine whose log has an event with a hostile name of a process. page_test.py starts the daemon and this file.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {axeFindsNothing, visit} from './visit.mjs';

test('the last events have their text and what helps, and no text becomes a part of the page', async () => {
  await visit({}, async (page) => {
    await page.waitForSelector('#events .events li');
    assert.equal(await page.locator('#events .events li').count(), 2);
    const [last, first] = await page.locator('#events .events li').allInnerTexts();
    assert.match(last, /GPU 0: ring timeout: .*ring gfx_0\.0\.0 timeout/);
    assert.match(first, /^about \d+ \w+ \d\d:\d\d:\d\d 0000:61:00\.0: XID 119: .*name=<script>alert\(1\)<\/script>/);
    assert.equal(await page.locator('#events script').count(), 0);
    assert.equal(await page.locator('#events .events li *').count(), 0);
  });
});

test('axe finds no violation, and nothing is wider than a phone', async () => {
  await visit({viewport: {width: 390, height: 844}, bypassCSP: true}, async (page) => {
    await page.waitForSelector('#events .events li');
    await axeFindsNothing(page);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth), false);
  });
});
