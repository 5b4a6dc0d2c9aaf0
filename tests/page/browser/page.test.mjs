// The page in a real browser. page_test.py starts the daemon and this file: 8 simulated GPUs, of which 3 overheats and 6 is
// lost; a run whose name is HTML. Requests to other hosts, errors and violations of the policy fail every test.
import assert from 'node:assert/strict';
import os from 'node:os';
import {after, before, test} from 'node:test';
import {axeFindsNothing, launch} from './visit.mjs';

const {PAGE_URL, PAGE_RUN} = process.env;
const DESKTOP = {width: 1440, height: 1000};
const PHONE = {width: 390, height: 844};
const SECONDS_TO_TOP = 3;

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** Opens the page, runs `use` and closes it; `use` gets the page and the paths that were requested. */
async function visit(options, use) {
  const context = await browser.newContext({viewport: DESKTOP, ...options});
  const page = await context.newPage();
  const wrong = [];
  const paths = [];
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.protocol === 'data:') return;
    paths.push(url.pathname + url.search);
    if (url.origin !== new URL(PAGE_URL).origin) wrong.push(`request to ${request.url()}`);
  });
  page.on('console', (message) => message.type() === 'error' && wrong.push(message.text()));
  page.on('pageerror', (error) => wrong.push(String(error)));
  page.on('dialog', (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    return dialog.dismiss();
  });
  try {
    await page.goto(PAGE_URL);
    await use(page, paths);
    assert.deepEqual(wrong, []);
  } finally {
    await context.close();
  }
}

const rows = (page) => page.locator('tr.gpu');
const firstRow = (page) => rows(page).first().innerText();

async function open(page) {
  await page.waitForSelector('tr.gpu');
  await page.locator('tr.gpu button').first().focus();
  await page.keyboard.press('Enter');
  await page.waitForSelector('.plot-line');
}

async function stateOfGpu(gpu) {
  const health = await (await fetch(new URL('api/v1/health', PAGE_URL))).json();
  return health.devices.find((device) => device.gpu === gpu).state;
}

/** Milliseconds until `is` resolves to true. */
async function timeUntil(is, atMost) {
  const begun = Date.now();
  while (!(await is())) {
    assert.ok(Date.now() - begun < atMost, `not within ${atMost} ms: ${is}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return Date.now() - begun;
}

test('the row of a GPU that fails moves to the top', async () => {
  await visit({}, async (page) => {
    for (const [gpu, word] of [['3', 'Degraded'], ['6', 'Failed']]) {
      await timeUntil(async () => (await stateOfGpu(gpu)) === word.toLowerCase(), 120_000);
      const isFirst = async () => (await firstRow(page)).includes(`GPU ${gpu}`) && (await firstRow(page)).includes(word);
      const took = await timeUntil(isFirst, 1000 * SECONDS_TO_TOP);
      console.log(`GPU ${gpu} is ${word} at the top ${took} ms after /api/v1/health`);
    }
    assert.equal(await rows(page).count(), 8);
    assert.match(await page.locator('#summary').innerText(), /^8 GPUs: 1 failed, 1 degraded, 6 OK/);
    assert.equal(await page.title(), `1 failed, 1 degraded, 6 OK – gpumeter ${os.hostname()}`);
    assert.equal(await page.locator('h1').innerText(), `gpumeter ${os.hostname()}`);
  });
});

test('a row opens by keyboard, with plots, throttling and events', async () => {
  await visit({}, async (page) => {
    await page.waitForSelector('tr.gpu');
    const three = page.locator('tr.gpu', {hasText: 'GPU 3'}).locator('button');
    await three.focus();
    await page.keyboard.press('Enter');
    await page.waitForSelector('.plot-line');
    assert.equal(await three.getAttribute('aria-expanded'), 'true');
    for (const range of ['5m', '6h']) {
      await page.check(`input[value="${range}"]`);
      await page.waitForFunction((name) => performance.getEntriesByType('resource').some((entry) => entry.name.endsWith(`range=${name}`)), range);
      const drawn = await page.locator('.plot-line.first').evaluateAll((lines) => lines.map((line) => line.getAttribute('d').length));
      assert.equal(drawn.length, 6);
      assert.ok(drawn.every((length) => length > 10), `${drawn}`);
      assert.ok(await page.locator('.throttle.thermal').count() >= 6);
      assert.ok(await page.locator('.event-mark').count() >= 6);
    }
    assert.match(await page.locator('.detail .events').innerText(), /^\d+ [A-Z][a-z]{2} \d\d:\d\d:\d\d .*thermal throttling/m);
    const repeated = await page.locator('svg.plot').evaluateAll((plots) => plots.map((plot) => [...plot.querySelectorAll('.tick:not(.time)')].map((tick) => tick.textContent))
      .filter((ticks) => new Set(ticks).size < ticks.length));
    assert.deepEqual(repeated, []);
    assert.match(await page.locator('.detail .reasons').innerText(), /^Degraded: .*What helps: /);
    const runbook = page.locator('.detail .reasons a').first();
    assert.match(await runbook.getAttribute('aria-label'), /^Runbook Gpu/);
    const target = await runbook.getAttribute('href');
    await page.keyboard.press('Escape');
    await three.press('Enter');
    assert.equal(await page.locator('.detail').count(), 0);
    await page.goto(new URL(target, PAGE_URL).href);
    assert.ok(await page.locator(`h2${new URL(target, PAGE_URL).hash}`).isVisible());
  });
});

test('the lost GPU keeps its sparkline and says so in words', async () => {
  await visit({}, async (page) => {
    await page.waitForSelector('tr.gpu');
    const row = page.locator('tr.gpu', {hasText: 'GPU 6'});
    assert.match(await row.innerText(), /Failed/);
    assert.match(await row.locator('.c-3').innerText(), /^–$/);
    assert.ok((await row.locator('.spark-line').getAttribute('d')).length > 50);
  });
});

test('names from outside are text', async () => {
  await visit({}, async (page) => {
    await page.waitForSelector('.jobs tbody tr');
    assert.equal(await page.locator('.jobs tbody th .gpu-name').first().innerText(), PAGE_RUN);
    assert.ok((await page.locator('tr.gpu', {hasText: 'GPU 0'}).innerText()).includes(PAGE_RUN));
    assert.equal(await page.locator('img').count(), 0);
  });
});

test('jobs have a step rate, a loss curve and phases', async () => {
  await visit({}, async (page) => {
    await page.waitForSelector('.jobs .spark-line[d^="M"]');
    const job = await page.locator('.jobs tbody tr').first().innerText();
    // The trainer sends 64 samples four times a second.
    const rate = Number(/([\d.]+)\ssamples\/s/.exec(job)[1]);
    assert.ok(Math.abs(rate - 256) < 20, job);
    for (const part of [/steps\/s/, /train \d/, /forward \d+\s%/, /running/]) assert.match(job, part);
  });
});

test('the runbooks are a page without violations', async () => {
  // The colours are all that another scheme changes.
  for (const [options, ...rules] of [[{colorScheme: 'light'}, 'color-contrast'], [{viewport: PHONE, colorScheme: 'dark'}]]) {
    await visit({...options, bypassCSP: true}, async (page) => {
      await page.goto(new URL('runbooks#gpulost', PAGE_URL).href);
      await axeFindsNothing(page, ...rules);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth), false);
    });
  }
});

for (const [name, options, opened] of [['desktop, light', {colorScheme: 'light'}, false], ['desktop, dark', {colorScheme: 'dark'}, true],
  ['phone, light', {viewport: PHONE, colorScheme: 'light'}, true], ['phone, dark', {viewport: PHONE, colorScheme: 'dark'}, false]]) {
  test(`axe finds no violation: ${name}`, async () => {
    await visit({...options, reducedMotion: 'reduce', bypassCSP: true}, async (page) => {
      await page.waitForSelector('.jobs tbody tr');
      if (opened) await open(page);
      await axeFindsNothing(page);
    });
  });
}

test('no text prints over another, from 320 to 2560 px', async () => {
  for (const width of [320, 390, 768, 1024, 1100, 1200, 1280, 1920, 2560]) {
    await visit({viewport: {width, height: 1000}}, async (page) => {
      await page.waitForSelector('.jobs tbody tr');
      const wide = await page.locator('#gpus :is(th, td), #jobs :is(th, td)').evaluateAll((cells) => cells
        .filter((cell) => cell.scrollWidth > cell.clientWidth + 1 && cell.clientWidth > 1).map((cell) => cell.innerText));
      assert.deepEqual(wide, [], `${width} px`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${width} px`);
    });
  }
});

test('a head sorts downwards, upwards, and no more', async () => {
  await visit({}, async (page) => {
    await page.waitForSelector('tr.gpu');
    const order = () => rows(page).evaluateAll((all) => all.map((row) => row.querySelector('.gpu-name').textContent));
    const urgency = await order();
    const head = page.locator('.gpus .sort', {hasText: 'GPU'});
    const byNumber = Array.from({length: 8}, (_, gpu) => `GPU ${gpu}`);
    for (const [said, want] of [['descending', [...byNumber].reverse()], ['ascending', byNumber], [null, urgency]]) {
      await head.click();
      assert.deepEqual(await order(), want);
      assert.equal(await page.locator('.gpus th').first().getAttribute('aria-sort'), said);
    }
  });
});

test('nothing is wider than a phone', async () => {
  await visit({viewport: PHONE}, async (page) => {
    await open(page);
    const widths = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
    assert.deepEqual(widths, [390, 390]);
  });
});

test('a page without JavaScript has the list and the links', async () => {
  await visit({javaScriptEnabled: false}, async (page) => {
    assert.equal(await page.locator('#static tr').count(), 9);
    assert.ok(await page.locator('#static').isVisible());
    assert.deepEqual(await page.locator('footer a').evaluateAll((links) => links.map((link) => link.getAttribute('href'))),
      ['./metrics', './api/v1/devices', './api/v1/series', './api/v1/live', './-/healthy', './-/ready', './runbooks']);
  });
});

test('a hidden page polls slowly and catches up', async () => {
  await visit({}, async (page, paths) => {
    await page.waitForSelector('tr.gpu');
    const hide = (isHidden) => page.evaluate((value) => {
      Object.defineProperty(document, 'hidden', {configurable: true, get: () => value});
      document.dispatchEvent(new Event('visibilitychange'));
    }, isHidden);
    await hide(true);
    await page.waitForTimeout(1500);
    const before = paths.length;
    await page.waitForTimeout(5000);
    assert.ok(paths.length - before <= 1, `${paths.slice(before)}`);
    await hide(false);
    await timeUntil(async () => paths.slice(before).includes('/api/v1/live?sparklines=1'), 5000);
  });
});

test('a page in front streams, and polls when the stream breaks', async () => {
  await visit({}, async (page, paths) => {
    const count = (path) => paths.filter((each) => each.startsWith(path)).length;
    const shown = () => page.locator('#freshness').innerText();
    await timeUntil(async () => count('/api/v1/stream') === 1 && /^as of/.test(await shown()), 5000);
    const [polls, time] = [count('/api/v1/live'), await shown()];
    await page.waitForTimeout(3000);
    assert.equal(count('/api/v1/live'), polls);
    assert.notEqual(await shown(), time);
    await page.route('**/api/v1/stream', (route) => route.fulfill({contentType: 'text/event-stream', body: 'retry: 2000\n\n'}));
    await page.evaluate(() => window.dispatchEvent(new Event('blur')));
    await timeUntil(async () => count('/api/v1/live') >= polls + 4, 8000);
    assert.equal(count('/api/v1/stream'), 2);
    assert.notEqual(await shown(), time);
  });
});

test('the files are revalidated, not loaded again', async () => {
  for (const path of ['gpumeter.js', 'gpumeter.css', '']) {
    const url = new URL(path, PAGE_URL);
    const response = await fetch(url);
    const again = await fetch(url, {headers: {'If-None-Match': response.headers.get('etag'), 'Cache-Control': 'no-cache'}});
    assert.equal(again.status, 304, path);
    assert.equal((await again.text()).length, 0);
  }
});
