// Looks at the pages of `becalm report --html`, `compare --html`, `fleet --html`, `predict --html`, `law --html`, `study --html` and `becalm paper` in headless Chromium: nothing fails, nothing leaves the file, every chart is
// drawn, and what can be clicked does what it says.
//
//   BECALM   the program                            BUNDLES  what the example page_bundles wrote
//   OUTPUT   where pages and screenshots go         CHROMIUM the browser, /usr/bin/chromium if not given
//   UNSEEN   makes no screenshots
//
// Run by the lane `browser` of .ci/lanes. Screenshots are made for people to look at, and take a tenth of the lane's processor time.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const { BECALM, BUNDLES, OUTPUT } = process.env;
assert.ok(BECALM && BUNDLES && OUTPUT, 'BECALM, BUNDLES and OUTPUT say what to test');
const [becalm, bundles, output] = [BECALM, BUNDLES, OUTPUT].map((path) => resolve(path));
mkdirSync(output, { recursive: true });

const DESK = { width: 1280, height: 900 };
const PHONE = { width: 360, height: 760 };
const MIB = 2 ** 20;

let browser;
let profile;

before(async () => {
  profile = mkdtempSync(join(tmpdir(), 'becalm-browser-'));
  browser = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    viewport: DESK,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
});

after(async () => {
  await browser?.close();
  rmSync(profile, { recursive: true, force: true });
});

const made = new Map();

// What a command answers, which is asked once for all that look at it, in the folder of the bundles.
function once(args) {
  const key = args.join(' ');
  if (!made.has(key)) made.set(key, execFileSync(becalm, args, { cwd: bundles, maxBuffer: 64 * MIB, stdio: ['ignore', 'pipe', 'pipe'] }));
  return made.get(key);
}

// The page that a command makes.
function html(name, args) {
  const file = join(output, `${name}.html`);
  once([...args, '--html', file]);
  return file;
}

const report = (name) => html(name, ['report', join(bundles, name)]);

const json = (...args) => JSON.parse(once([...args, '--json']));

// Opens a page; every message of its console and every request but that for the file itself is a fault.
async function open(file, { scheme = 'light', size = DESK } = {}) {
  const page = await browser.newPage();
  const faults = [];
  await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme: scheme });
  page.on('console', (message) => faults.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on('request', (request) => {
    const url = request.url();
    if (url !== pathToFileURL(file).href && !url.startsWith('data:')) faults.push(`request: ${url}`);
  });
  await page.goto(pathToFileURL(file).href);
  await page.waitForFunction(() => document.documentElement.dataset.drawnMs !== undefined);
  return { page, faults };
}

// How many colors the canvas of each chart holds, and which part of it is not the most frequent one.
// An event may come right before, with no time to draw anything later.
function canvases(page, event) {
  return page.evaluate((name) => {
    if (name) window.dispatchEvent(new Event(name));
    return [...document.querySelectorAll('.chart')].map(pixels);

    function pixels(chart) {
      // A chart may have several layers.
      const layers = [...chart.querySelectorAll('canvas')];
      const canvas = document.createElement('canvas');
      [canvas.width, canvas.height] = [layers[0].width, layers[0].height];
      const context = canvas.getContext('2d');
      layers.forEach((layer) => context.drawImage(layer, 0, 0));
      const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
      const colors = new Map();
      for (let at = 0; at < data.length; at += 4) {
        const color = (data[at] << 24) | (data[at + 1] << 16) | (data[at + 2] << 8) | data[at + 3];
        colors.set(color, (colors.get(color) ?? 0) + 1);
      }
      return { id: chart.id.replace(/-chart$/, ''), colors: colors.size, drawn: 1 - Math.max(...colors.values()) / (data.length / 4) };
    }
  }, event);
}

async function checkDrawn(page, charts, event) {
  const found = await canvases(page, event);
  assert.deepEqual(found.map((one) => one.id).sort(), [...charts].sort());
  for (const one of found) {
    assert.ok(one.colors > 12, `${one.id} has only ${one.colors} colors`);
    assert.ok(one.drawn > 0.01, `${one.id} is almost blank: ${one.drawn}`);
  }
}

const ALL = ['detours', 'by-length', 'distribution', 'survival', 'sources-total', 'sources-max', 'heat', 'slowdown', 'blame'];
const without = (...names) => ALL.filter((name) => !names.includes(name));

// The charts of a run; the spectrum wherever the run has one.
async function expected(page, charts) {
  const spectrum = await page.evaluate(() => document.getElementById('spectrum-chart') !== null);
  return spectrum ? [...charts, 'spectrum'] : charts;
}

// WCAG 2.2: the contrast of each text with what lies behind it.
function contrasts(page) {
  return page.evaluate(() => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    canvas.canvas.width = 1;
    canvas.canvas.height = 1;
    const channels = (layers) => {
      canvas.clearRect(0, 0, 1, 1);
      layers.forEach((layer) => { canvas.fillStyle = layer; canvas.fillRect(0, 0, 1, 1); });
      return canvas.getImageData(0, 0, 1, 1).data;
    };
    const luminance = (data) => {
      const [r, g, b] = [...data].slice(0, 3).map((value) => {
        const part = value / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const lowest = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const seen = new Set();
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      if (!walker.currentNode.textContent.trim() || seen.has(element) || !element.checkVisibility() || element.closest('svg, caption, .skip')) continue;
      seen.add(element);
      const layers = [];
      for (let node = element; node; node = node.parentElement) layers.unshift(getComputedStyle(node).backgroundColor);
      const back = luminance(channels(layers));
      const front = luminance(channels([...layers, getComputedStyle(element).color]));
      const contrast = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
      if (contrast < 4.5) lowest.push(`${element.tagName}.${element.className} "${element.textContent.trim().slice(0, 30)}" ${contrast.toFixed(2)}`);
    }
    return lowest;
  });
}

// A picture of a page, or of one part of it.
async function shot(page, name, part) {
  if (process.env.UNSEEN) return;
  const path = join(output, `${name}.png`);
  await (part ? page.locator(part).screenshot({ path }) : page.screenshot({ path, fullPage: true }));
}

for (const scheme of ['light', 'dark']) {
  test(`a run like those of servers, ${scheme}`, async () => {
    const { page, faults } = await open(report('lively'), { scheme });
    await checkDrawn(page, await expected(page, ALL));
    assert.deepEqual(await contrasts(page), [], 'every text stands out from its ground');
    const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(ground, scheme === 'light' ? 'rgb(244, 246, 249)' : 'rgb(13, 19, 27)');
    await page.evaluate(() => window.becalm.openDetour(0, true));
    await shot(page, `lively-${scheme}`);
    assert.deepEqual(faults, []);
    await page.close();
  });
}

test('the theme button changes the theme and redraws', async () => {
  const { page, faults } = await open(report('lively'), { scheme: 'light' });
  const look = () => page.evaluate(() => ({
    ground: getComputedStyle(document.body).backgroundColor,
    chart: document.querySelector('#sources-total-chart canvas').toDataURL().length,
    text: document.getElementById('theme').textContent,
  }));
  const auto = await look();
  await page.click('#theme');
  assert.deepEqual(await look(), { ...auto, text: 'Light' });
  await page.click('#theme');
  const dark = await look();
  assert.equal(dark.text, 'Dark');
  assert.notEqual(dark.ground, auto.ground);
  assert.notEqual(dark.chart, auto.chart);
  await page.click('#theme');
  assert.deepEqual(await look(), auto);
  assert.deepEqual(faults, []);
  await page.close();
});

test('figures are written as the terminal writes them', async () => {
  const { page, faults } = await open(report('quiet'));
  const rows = JSON.parse(readFileSync(join(bundles, 'figures.json'), 'utf8'));
  assert.ok(rows.length > 10_000);
  const wrong = await page.evaluate((all) => all
    .map(([unit, value, text]) => [unit, value, text, window.becalm.write[unit](value)])
    .filter(([, , text, written]) => text !== written).slice(0, 20), rows);
  assert.deepEqual(wrong, []);
  assert.deepEqual(faults, []);
  await page.close();
});

test('tables hold the figures of the JSON document, as the terminal writes them', async () => {
  const run = json('report', join(bundles, 'lively'));
  const { page } = await open(report('lively'));
  const cells = await page.$$eval('[aria-label="Sources"] tbody tr', (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
  const keys = await page.$$eval('[aria-label="Sources"] tbody tr', (rows) => rows.map((row) => [...row.cells].map((cell) => cell.dataset.key)));
  assert.equal(cells.length, run.sources.length);
  run.sources.forEach((source, at) => {
    assert.deepEqual(cells[at].slice(0, 2), [source.source, source.kind]);
    assert.equal(Number(keys[at][3]), source.max_ns);
    assert.equal(Number(keys[at][5]), source.total_ns);
    assert.equal(Number(keys[at][7]), source.whole_ns);
  });
  const text = once(['report', join(bundles, 'lively'), '--full']).toString();
  for (const row of cells) {
    const line = text.split('\n').find((one) => one.trimStart().startsWith(`${row[0]} `) && one.includes(` ${row[2]} `));
    assert.ok(line, `${row[0]} is in the terminal's table`);
    for (const cell of row) assert.ok(line.includes(cell), `${cell} of ${row[0]} in: ${line}`);
  }
  await page.close();
});

test('the page says how sure its figures are, as the terminal does', async () => {
  const run = json('report', join(bundles, 'lively'));
  const text = once(['report', join(bundles, 'lively'), '--full']).toString().replace(/\s+/g, ' ');
  const { page, faults } = await open(report('lively'));
  const rows = await page.$$eval('#sure tbody tr', (all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
  assert.equal(rows.length, run.cpus.length + 1);
  for (const row of rows) assert.ok(text.includes(row.join(' ')), `${row}`);
  const words = await page.$$eval('#sure .note', (all) => all.map((one) => one.textContent));
  assert.ok(words.length > 0 && words.every((one) => text.includes(one)), `${words}`);
  const periods = await page.$$eval('#periods tbody tr', (all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
  assert.ok(periods.some((row) => row[0] === 'irq tick' && row[1].startsWith('4.000')), `${periods}`);
  for (const row of periods.slice(0, 12)) assert.ok(text.includes(row.join(' ')), `${row}`);
  // The longest to expect, unless it is not known.
  const tile = await page.locator('.tile', { hasText: 'Longest to expect' }).locator('strong').allTextContents();
  if (run.total.tail_verdict === 'fits') assert.ok(tile[0].startsWith('over '), `${tile}`);
  else assert.deepEqual(tile, []);
  assert.deepEqual(faults, []);
  await page.close();
});

test('a click on a point shows what happened in that detour', async () => {
  const { page, faults } = await open(report('lively'));
  // Zoomed in, so that the point lies alone; then a real click on its pixels.
  const target = await page.evaluate(() => {
    const { chart, spec } = window.becalm.drawn.get('detours');
    const at = spec.activities.findIndex((flat, i) => flat.length >= 24 && spec.starts[i] > 0);
    window.becalm.zoomTo('detours', spec.starts[at] - 3e6, spec.starts[at] + 3e6);
    chart.getZr().flush();
    const [x, y] = chart.convertToPixel({ seriesIndex: 0 }, [spec.starts[at], spec.durations[at]]);
    document.getElementById('detours-chart').scrollIntoView({ block: 'center', behavior: 'instant' });
    const box = document.getElementById('detours-chart').getBoundingClientRect();
    return { at, x: box.x + x, y: box.y + y, cpu: spec.cpu[at], number: spec.number[at] };
  });
  await page.mouse.move(target.x - 30, target.y);
  await page.mouse.move(target.x + 1, target.y);
  await page.mouse.click(target.x + 1, target.y);
  await page.waitForSelector('#detour:not([hidden]) table');
  const title = await page.textContent('#detour h3');
  assert.ok(title.startsWith(`Detour ${target.number} of CPU ${target.cpu} on node1: `), title);
  const cells = await page.$$eval('#detour tbody tr', (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
  const detail = json('detours', join(bundles, 'lively'), '--detour', `${target.cpu}:${target.number}`).detours[0];
  assert.equal(cells.length, detail.activities.length);
  const written = await page.evaluate((all) => all.map((one) => [
    window.becalm.write.time(one.offset_ns), window.becalm.write.time(one.self_ns), window.becalm.write.share(one.share_ratio),
    one.kind, `${'  '.repeat(one.depth)}${one.source}`, one.detail,
  ]), detail.activities);
  assert.deepEqual(cells, written);
  const blocks = await page.$$eval('#detour svg rect', (all) => all.length);
  assert.ok(blocks >= detail.activities.filter((one) => one.kind !== 'edge').length, `${blocks} blocks`);
  await shot(page, 'detour', '#detour');
  await shot(page, 'zoomed', '#detours');
  await page.click('#detour >> text=Close');
  assert.ok(await page.isHidden('#detour'));
  assert.deepEqual(faults, []);
  await page.close();
});

test('zoom narrows the view, down to one detour and back', async () => {
  const { page, faults } = await open(report('lively'));
  const range = () => page.evaluate(() => window.becalm.drawn.get('detours').view.range);
  const whole = await range();
  await page.click('#detours-tools >> text=Zoom in');
  const half = await range();
  assert.ok(Math.abs((half[1] - half[0]) / (whole[1] - whole[0]) - 0.25) < 0.01, `${half} of ${whole}`);
  await page.click('tr[data-opens="0"] button');
  await page.click('#detour >> text=Zoom to it');
  const [from, to] = await range();
  const duration = await page.evaluate(() => window.becalm.drawn.get('detours').spec.durations[0]);
  assert.ok(to - from <= duration * 5.01 && to - from >= duration * 4.9, `${to - from} for ${duration}`);
  assert.match(await page.textContent('#detours-tools .said'), /^\d+ of [\d,]+ drawn detours in view$/);
  await page.click('#detours-tools >> text=Whole run');
  assert.deepEqual(await range(), whole);
  // The handle at the right end of the bar below the chart.
  const handle = await page.evaluate(() => {
    const { chart, spec } = window.becalm.drawn.get('detours');
    const element = document.getElementById('detours-chart');
    element.scrollIntoView({ block: 'center', behavior: 'instant' });
    const box = element.getBoundingClientRect();
    return { x: box.x + chart.convertToPixel({ xAxisIndex: 0 }, spec.end_ns), y: box.bottom - 27, width: box.width };
  });
  await page.mouse.move(handle.x, handle.y);
  await page.mouse.down();
  await page.mouse.move(handle.x - handle.width / 2, handle.y, { steps: 8 });
  await page.mouse.up();
  await page.waitForTimeout(200);
  const dragged = await range();
  assert.ok(dragged[0] === whole[0] && dragged[1] < whole[1] * 0.7, `${dragged}`);
  assert.deepEqual(faults, []);
  await page.close();
});

test('tables sort by their plain values', async () => {
  const { page, faults } = await open(report('lively'));
  const column = (at) => page.$$eval('[aria-label="Sources"] tbody tr', (rows, index) => rows.map((row) => row.cells[index].dataset.key ?? row.cells[index].textContent), at);
  const header = (title) => page.locator('[aria-label="Sources"] th button', { hasText: new RegExp(`^${title}$`) });
  await header('longest').click();
  let values = (await column(3)).map(Number);
  assert.deepEqual(values, [...values].sort((a, b) => b - a));
  await header('longest').click();
  values = (await column(3)).map(Number);
  assert.deepEqual(values, [...values].sort((a, b) => a - b));
  assert.equal(await page.getAttribute('[aria-label="Sources"] th:nth-child(4)', 'aria-sort'), 'ascending');
  await header('source').click();
  const names = await column(0);
  assert.deepEqual(names, [...names].sort((a, b) => a.localeCompare(b, 'en', { numeric: true })));
  assert.deepEqual(faults, []);
  await page.close();
});

test('names that an enemy chose are texts', async () => {
  const { page, faults } = await open(report('hostile'));
  await checkDrawn(page, await expected(page, ALL));
  await page.evaluate(() => window.becalm.openDetour(0));
  const strange = await page.evaluate(() => document.querySelectorAll('img, [onerror], [onload], [onmouseover], svg[onload], iframe').length);
  assert.equal(strange, 0);
  const sources = await page.$$eval('[aria-label="Sources"] tbody tr', (rows) => rows.map((row) => row.cells[0].textContent));
  assert.ok(sources.includes('</script><img src=x onerror=alert(1)>'), `${sources}`);
  assert.match(await page.textContent('#detour'), /<!--<script>|<\/script>|onload/);
  await shot(page, 'hostile');
  assert.deepEqual(faults, []);
  await page.close();
});

test('the policy lets nothing else run, and no request out', async () => {
  let asked = 0;
  const server = createServer((request, response) => {
    asked += 1;
    response.end();
  });
  await new Promise((ready) => { server.listen(0, '127.0.0.1', ready); });
  const { page, faults } = await open(report('quiet'));
  await page.evaluate((address) => {
    const script = document.createElement('script');
    script.textContent = 'window.intruded = true';
    document.body.append(script);
    document.body.insertAdjacentHTML('beforeend', '<b id="enemy" onclick="window.intruded = true">x</b>');
    document.getElementById('enemy').click();
    new Image().src = `${address}/leak.png`;
    fetch(`${address}/leak`).catch(() => {});
  }, `http://127.0.0.1:${server.address().port}`);
  await page.waitForTimeout(300);
  server.close();
  assert.equal(asked, 0);
  assert.equal(await page.evaluate(() => window.intruded), undefined);
  assert.ok(faults.filter((fault) => fault.includes('Content Security Policy')).length >= 4, `${faults}`);
  await page.close();
});

test('a phone shows everything without scrolling sideways', async () => {
  for (const name of ['lively', 'cluster', 'wide', 'quiet', 'hostile']) {
    const { page, faults } = await open(report(name), { size: PHONE });
    await page.evaluate(() => window.becalm.drawn.has('detours') && window.becalm.openDetour(0, true));
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= PHONE.width, `${name} is ${width} wide`);
    if (name === 'lively') {
      await checkDrawn(page, await expected(page, ALL));
      await shot(page, 'lively-phone');
    }
    assert.deepEqual(faults, []);
    await page.close();
  }
});

// The pages of a PDF as pixels, 60 to the inch.
function raster(pdf) {
  const all = execFileSync('pdftoppm', ['-r', '60', '-'], { input: pdf, maxBuffer: 256 * MIB });
  const pages = [];
  for (let at = 0; at < all.length;) {
    const [head, width, height] = /^P6\s+(\d+)\s+(\d+)\s+255\s/.exec(all.subarray(at, at + 40).toString('latin1'));
    const from = at + head.length;
    at = from + 3 * width * height;
    pages.push(all.subarray(from, at));
  }
  return pages;
}

// How many pixels differ visibly.
function difference(one, other) {
  let pixels = 0;
  for (let at = 0; at < one.length; at += 3) {
    if ([0, 1, 2].some((color) => Math.abs(one[at + color] - other[at + color]) > 24)) pixels += 1;
  }
  return pixels;
}

test('it prints', async () => {
  const { page, faults } = await open(report('lively'), { scheme: 'dark' });
  const file = join(output, 'lively.pdf');
  const whole = await page.pdf({ path: file, format: 'A4', printBackground: true });
  assert.ok(whole.subarray(0, 5).equals(Buffer.from('%PDF-')));
  // What is on paper is what is drawn for it: light, and before the printer takes it.
  await checkDrawn(page, await expected(page, ALL), 'beforeprint');
  const map = (await canvases(page, 'beforeprint')).find((one) => one.id === 'heat');
  assert.ok(map.drawn > 0.3, `the map is drawn on ${map.drawn} of its canvas`);
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(244, 246, 249)');
  await page.evaluate(() => window.dispatchEvent(new Event('afterprint')));
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(13, 19, 27)');
  // Every chart is on the paper that comes out, and takes nothing else from it: without it, only its own place changes.
  const sheets = raster(whole);
  for (const id of ALL) {
    const chart = (visibility) => page.evaluate(([name, value]) => {
      document.getElementById(`${name}-chart`).style.visibility = value;
    }, [id, visibility]);
    await chart('hidden');
    const lacking = raster(await page.pdf({ format: 'A4', printBackground: true }));
    await chart('');
    assert.equal(lacking.length, sheets.length, `${id}: as many pages with it as without`);
    const changed = sheets.map((sheet, number) => difference(sheet, lacking[number]));
    assert.equal(changed.filter((pixels) => pixels > 0).length, 1, `${id} is on one page: ${changed}`);
    assert.ok(Math.max(...changed) > (id === 'heat' ? 10_000 : 1_000), `${id}: ${changed} pixels of it`);
  }
  assert.deepEqual(faults, []);
  await page.close();
});

const EDGES = {
  quiet: ['slowdown'],
  plain: without('sources-total', 'sources-max', 'blame'),
  imported: without('sources-total', 'sources-max', 'blame'),
  busy: ALL,
  killed: ALL,
  open: without('blame'),
  many: ALL,
  wide: ALL,
  cluster: ALL,
};

for (const [name, charts] of Object.entries(EDGES)) {
  test(`the run '${name}'`, async () => {
    const { page, faults } = await open(report(name));
    if (await page.$('#detours-chart')) await page.evaluate(() => window.becalm.openDetour(0, true));
    await shot(page, name);
    await checkDrawn(page, await expected(page, charts));
    assert.deepEqual(faults, []);
    await page.close();
  });
}

const comparison = (a, b, name) => html(name, ['compare', join(bundles, a), join(bundles, b)]);

const COMPARED = ['changes', 'sources-pairs', 'sources-changes', 'cpus-pairs', 'cpus-changes'];

for (const scheme of ['light', 'dark']) {
  test(`two runs against each other, ${scheme}`, async () => {
    const { page, faults } = await open(comparison('lively', 'livelier', 'compare'), { scheme });
    await checkDrawn(page, COMPARED);
    assert.deepEqual(await contrasts(page), [], 'every text stands out from its ground');
    await shot(page, `compare-${scheme}`);
    assert.deepEqual(faults, []);
    await page.close();
  });
}

test('the page of two runs holds the figures of the JSON document', async () => {
  const document = json('compare', join(bundles, 'lively'), join(bundles, 'livelier'));
  const { page, faults } = await open(comparison('lively', 'livelier', 'compare'));
  const answer = await page.textContent('.verdict .answer');
  assert.ok(document.headline.startsWith(answer.replace(/\.$/, '').replace('\u2192', '->')), `${answer} in ${document.headline}`);
  const tables = await page.$$eval('table', (all) => all.map((table) => [
    table.caption.textContent, [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.dataset.key ?? cell.textContent)),
  ]));
  const held = new Map(tables);
  const check = (caption, rows, name) => {
    const cells = held.get(caption);
    assert.equal(cells.length, rows.length, caption);
    for (const row of rows) {
      const found = cells.find((one) => one[0] === name(row));
      assert.ok(found, `${name(row)} in ${caption}`);
      const places = [[1, row.a], [2, row.b], [3, row.effect_ratio === null ? null : row.effect_ratio - 1]];
      for (const [at, value] of places) {
        if (value === null) assert.equal(found[at], '-');
        else assert.ok(Math.abs(Number(found[at]) - value) <= 0.5 + Math.abs(value) * 1e-9, `${found[at]} for ${value} in ${caption}`);
      }
    }
  };
  const sources = document.rows.filter((row) => row.source !== null);
  const named = (row) => (['edge', 'unseen'].includes(row.kind) ? `${row.kind} ${row.source}` : row.source);
  check('All CPUs together', document.rows.filter((row) => row.source === null && row.cpu === null), (row) => row.title);
  check('Sources, share of time', sources.filter((row) => row.what === 'time_ratio'), named);
  check('Sources, rate', sources.filter((row) => row.what === 'rate_hz'), named);
  check('CPUs, noise', document.rows.filter((row) => row.cpu !== null && row.what === 'noise_ratio'), (row) => String(row.cpu));
  // A column that sorts.
  await page.locator('#sources table').first().locator('th button', { hasText: /^B$/ }).click();
  const sorted = await page.$$eval('#sources table', (all) => [...all[0].tBodies[0].rows].map((row) => Number(row.cells[2].dataset.key)));
  assert.deepEqual(sorted, [...sorted].sort((a, b) => b - a));
  assert.deepEqual(faults, []);
  await page.close();
});

test('every interval stands where its figures are', async () => {
  const { page, faults } = await open(comparison('lively', 'livelier', 'compare'));
  const document = json('compare', join(bundles, 'lively'), join(bundles, 'livelier'));
  const rows = await page.evaluate(() => window.becalm.drawn.get('changes').spec.rows);
  const expected = document.rows.filter((row) => row.source === null && row.cpu === null && row.effect_ratio > 0);
  assert.deepEqual(rows.map((row) => [row.name, row.ratio, row.low, row.high]),
    expected.map((row) => [row.title, row.effect_ratio, row.effect_ratio_low, row.effect_ratio_high]));
  // The point of each row lies between the ends of its interval, left or right of 1 as its ratio says.
  const placed = await page.evaluate(() => {
    const { chart, spec } = window.becalm.drawn.get('changes');
    return spec.rows.map((row, at) => [row, ...[1, row.ratio].map((value) => chart.convertToPixel({ seriesIndex: 1 }, [value, at])[0])]);
  });
  for (const [row, line, point] of placed) assert.equal(Math.sign(point - line), Math.sign(row.ratio - 1), row.name);
  assert.deepEqual(faults, []);
  await page.close();
});

test('a comparison on a phone, of an enemy, of equals and of a run without names', async () => {
  const pairs = [
    ['lively', 'livelier', PHONE], ['hostile', 'hostile-again', PHONE], ['lively', 'lively-again', DESK], ['quiet', 'quiet-again', DESK],
    ['cluster', 'cluster-again', DESK], ['plain', 'busy', DESK],
  ];
  for (const [a, b, size] of pairs) {
    const { page, faults } = await open(comparison(a, b, `compare-${a}-${b}`), { size });
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= size.width, `${a} against ${b} is ${width} wide`);
    for (const one of await canvases(page)) assert.ok(one.colors > 4, `${one.id} of ${a} against ${b} has ${one.colors} colors`);
    assert.equal(await page.evaluate(() => document.querySelectorAll('img, [onerror], [onload], iframe').length), 0);
    await shot(page, `compare-${a}-${b}-${size.width}`);
    assert.deepEqual(faults, []);
    await page.close();
  }
});

const WORK = ['distribution', 'survival', 'head', 'series', 'histogram', 'repetitions', 'left', 'survival-left', 'spectrum'];

const workReport = (name, ...args) => html(name, ['report', join(bundles, name), ...args]);

for (const scheme of ['light', 'dark']) {
  test(`a run of work, ${scheme}`, async () => {
    const { page, faults } = await open(workReport('work', '--baseline', join(bundles, 'calm')), { scheme });
    await checkDrawn(page, WORK);
    assert.deepEqual(await contrasts(page), [], 'every text stands out from its ground');
    await shot(page, `work-${scheme}`);
    assert.deepEqual(faults, []);
    await page.close();
  });
}

test('the page of a run of work holds the figures of the JSON document', async () => {
  const args = ['--baseline', join(bundles, 'calm')];
  const cpu = json('report', join(bundles, 'work'), ...args).runs[0].cpus[0];
  const { page, faults } = await open(workReport('work', ...args));
  const tables = new Map(await page.$$eval('table', (all) => all.map((table) => [
    table.caption.textContent, [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.dataset.key ?? cell.textContent)),
  ])));
  const table = (start) => [...tables].find(([caption]) => caption.startsWith(start))[1];
  const samples = table('Samples')[0].map(Number);
  const names = ['cpu', 'samples', 'iterations', 'mean_ns', 'stddev_ns', 'min_ns', 'p25_ns', 'median_ns', 'p75_ns', 'p99_ns', 'p999_ns', 'max_ns', 'fasties', 'slowies'];
  names.forEach((name, at) => assert.equal(samples[at], cpu[name], name));
  const steps = table('Subtraction');
  assert.deepEqual(steps.slice(1).map((row) => [row[0], Number(row[4]), Number(row[11])]), cpu.subtraction.map((step) => [step.source, step.total_ns, step.slowies]));
  assert.deepEqual(table('Frequencies').map((row) => [Number(row[0]), row[2]]), cpu.spectrum.tones.map((tone) => [tone.frequency_hz, tone.source ?? '-']));
  assert.deepEqual(table('The processor').map((row) => [row[0], Number(row[1]), Number(row[2])]), cpu.counters.map((one) => [one.event, one.user, one.kernel]));
  assert.equal(Number(table('Repetitions of a second')[0][3]), cpu.repetitions.mean_ns);
  assert.equal(Number(table('Against the baseline')[0][5]), cpu.baseline.mean_ratio);
  // Curves are the document's, and their points stand where these say.
  const drawn = await page.evaluate(() => {
    const points = (id) => window.becalm.drawn.get(id).spec.series.map((series) => series.points);
    const { chart, spec } = window.becalm.drawn.get('survival');
    const place = ([x, y]) => chart.convertToPixel({ seriesIndex: 0 }, [x, y]);
    return { series: points('series'), histogram: points('histogram')[0], survival: spec.series[0].points.map(place) };
  });
  assert.deepEqual(drawn.series[0].map((point) => point[1]), cpu.series.map((moment) => moment[2]));
  assert.deepEqual(drawn.series[1].map((point) => point[1]), cpu.series.map((moment) => moment[1]));
  assert.deepEqual(drawn.histogram.slice(0, -1), cpu.histogram);
  assert.ok(drawn.survival.every(([x, y], at) => at === 0 || (x > drawn.survival[at - 1][0] - 0.01 && y > drawn.survival[at - 1][1] - 0.01)), 'it falls');
  assert.deepEqual(faults, []);
  await page.close();
});

test('runs of work on a phone, of two CPUs, of an enemy and without a trace', async () => {
  const rest = WORK.filter((name) => name !== 'repetitions');
  for (const [name, charts] of [['work', WORK], ['quanta', WORK], ['calm', WORK.filter((one) => !one.endsWith('left'))], ['workers', rest], ['untraced', rest.filter((one) => !one.endsWith('left'))]]) {
    const { page, faults } = await open(workReport(name), { size: PHONE });
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= PHONE.width, `${name} is ${width} wide`);
    await checkDrawn(page, charts);
    assert.equal(await page.evaluate(() => document.querySelectorAll('img, [onerror], [onload], iframe').length), 0);
    await shot(page, `work-${name}-phone`);
    assert.deepEqual(faults, []);
    await page.close();
  }
});

// The pages of predictions, laws, jobs and costs: what makes each, and its charts.
const FEW = ['--ranks', '16,64,256,1Ki', '--phases', '200', '--replicas', '3'];
const NOISES = 'periodic:interval={1ms,10ms,100ms},detour={16us,50us,100us,200us}';
const ASKED = {
  // At 16 ranks, the first, no source gains surely when it is taken out, and there is nothing to draw.
  'predict-run': [['predict', 'lively', '--blame', ...FEW], ['slowdown', 'phases-1', 'blame-1', 'blame-2', 'blame-3']],
  'predict-grains': [['predict', 'poisson:rate=10Hz,detour=100us', '--grain', '1ms,10ms', '--tolerate', '5%', ...FEW], ['slowdown', 'phases-1', 'phases-2']],
  // Figure 6 of Beckman et al. 2007, with fewer ranks and phases.
  'predict-sweep': [['predict', NOISES, '--sync=both', '--grain', '0', '--collective', 'barrier', '--network', 'bgl', ...FEW],
    ['slowdown-1', 'slowdown-2', 'surface', 'phase-1', 'phase-2']],
  'predict-names': [['predict', 'periodic:interval=1ms,detour=50us', 'poisson:rate=10Hz,detour=100us', '--ranks', '64', '--phases', '200'], ['slowdown-1', 'phase-1']],
  law: [['predict', '--law', '--grain', '1ms', '--delay', '50us', '--probability', '0.01%', '--ranks', '64,1Ki,16Ki,1Mi', '--tolerate', '1%'], ['slowdown']],
  // Figure 9 of Tsafrir 2007.
  'law-sweep': [['predict', '--law', '--grain', '1ms,2ms,5ms,10ms,20ms', '--delay', '1ms', '--rate', '0.1Hz', '--ranks', '1,1Ki,100Ki,1Mi', '--tolerate', '5%'],
    ['slowdown-1', 'surface', 'tolerance-surface']],
  job: [['report', 'jobs/job'], ['compute', 'total', 'collective', 'histogram', 'survival', 'latest-ranks', 'latest-map']],
  'job-long': [['report', 'jobs/long'], ['compute', 'total', 'collective', 'histogram', 'survival', 'latest-ranks', 'latest-map']],
  // Figure 8 of De et al. 2009, with two jobs.
  jobs: [['compare', 'jobs/job', 'jobs/rr80'], ['bars', 'changes', 'worst', 'survival'].flatMap((kind) => ['qt', 'bt', 'qtbt'].map((time) => `${kind}-${time}`))],
  trap: [['report', 'costs/trap'], ['costs']],
  catalogue: [['report', 'costs/catalogue'], ['costs']],
  clock: [['report', 'costs/clock'], ['readings', 'steps']],
  scheduler: [['report', 'costs/scheduler'], ['overhead', 'switches', 'ticks']],
  placement: [['report', 'costs/placement'], ['placed']],
};

const asked = (name) => html(name, ASKED[name][0]);
const askedJson = (name) => json(...ASKED[name][0]);
const tableOf = (page, caption) => page.$$eval('table', (all, wanted) => {
  const table = all.find((one) => one.caption.textContent.startsWith(wanted));
  return [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.dataset.key ?? cell.textContent));
}, caption);

for (const [name, [, charts]] of Object.entries(ASKED)) {
  test(`a page of ${name}, light, dark and on a phone`, async () => {
    const file = asked(name);
    for (const [scheme, size] of [['light', DESK], ['dark', DESK], ['light', PHONE]]) {
      const { page, faults } = await open(file, { scheme, size });
      const found = await canvases(page);
      assert.deepEqual(found.map((one) => one.id).sort(), [...charts].sort());
      for (const one of found) assert.ok(one.colors > 12 && one.drawn > 0.004, `${one.id} is almost blank: ${JSON.stringify(one)}`);
      assert.deepEqual(await contrasts(page), [], 'every text stands out from its ground');
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= size.width, `${name} is ${width} wide`);
      await shot(page, `${name}-${size === PHONE ? 'phone' : scheme}`);
      assert.deepEqual(faults, []);
      await page.close();
    }
  });
}

test('a sweep draws a curve for each noise, and ways in which noise comes side by side', async () => {
  const { cells } = askedJson('predict-sweep');
  const { page, faults } = await open(asked('predict-sweep'));
  const drawn = await page.evaluate(() => ['slowdown-1', 'slowdown-2'].map((id) => {
    const { chart, spec } = window.becalm.drawn.get(id);
    const option = chart.getOption();
    return {
      y: [spec.y.min, spec.y.max],
      series: spec.series,
      legend: option.legend[0].data.map((one) => one.name),
    };
  }));
  assert.deepEqual(drawn[0].y, drawn[1].y, 'one axis for both');
  for (const [at, synchronized] of [[0, false], [1, true]]) {
    const own = cells.filter((cell) => cell.synchronized === synchronized);
    assert.equal(drawn[at].series.length, 12);
    assert.deepEqual(drawn[at].legend, drawn[at].series.map((series) => series.name));
    const points = drawn[at].series.flatMap((series) => series.points);
    assert.deepEqual(points, own.map((cell) => [cell.ranks, cell.slowdown_ratio]));
    const bands = drawn[at].series.flatMap((series) => series.band);
    assert.deepEqual(bands, own.map((cell) => [Math.max(cell.slowdown_low, 1), cell.slowdown_high]));
    // Colors come again behind eight curves, and are then broken.
    assert.deepEqual(drawn[at].series.map((series) => series.dashed ?? false), drawn[at].series.map((_, number) => number >= 8));
  }
  const rows = await tableOf(page, 'All cells');
  assert.equal(rows.length, cells.length);
  rows.forEach((row, at) => assert.equal(Number(row[3]), cells[at].slowdown_ratio));
  const surface = await page.evaluate(() => window.becalm.drawn.get('surface').spec);
  assert.deepEqual(surface.cells.flat(), cells.map((cell) => cell.slowdown_ratio));
  assert.deepEqual(faults, []);
  await page.close();
});

test('observed threads have lanes of their states, and long spans of what happened in them', async () => {
  const observed = await open(html('observed', ['report', join(bundles, 'observed')]));
  await checkDrawn(observed.page, ['lives']);
  const { sorts, rows } = await observed.page.evaluate(() => window.becalm.drawn.get('lives').spec);
  const thread = json('report', join(bundles, 'observed')).threads[0];
  assert.deepEqual(rows.map((row) => row.name), [`${thread.name} (${thread.tid})`]);
  // Each cell has the color of the state with most of it: some five per step.
  const time = new Map(sorts.map((sort) => [sort.name, 0]));
  rows[0].ends.forEach((end, at) => {
    const name = sorts[rows[0].sorts[at]].name;
    time.set(name, time.get(name) + end - (at ? rows[0].ends[at - 1] : rows[0].start));
  });
  for (const [name, ns] of [['ran', thread.ran_ns], ['asleep', thread.asleep_ns]]) {
    assert.ok(Math.abs(time.get(name) - ns) < 0.15 * ns, `${name}: ${time.get(name)} of ${ns}`);
  }
  assert.deepEqual(observed.faults, []);
  await shot(observed.page, 'observed');
  await observed.page.close();

  const asked = ['explain', join(bundles, 'observed'), '--spans', join(bundles, 'steps.csv')];
  const explained = await open(html('explained', asked));
  await checkDrawn(explained.page, ['timelines']);
  const { worst, sentence } = json(...asked);
  const lanes = await explained.page.evaluate(() => window.becalm.drawn.get('timelines').spec.rows);
  assert.deepEqual(lanes.map((lane) => lane.ends), worst.map((span) => span.timeline.map((stretch) => stretch.until_ns)));
  assert.equal(await explained.page.locator('.verdict .answer').textContent(), sentence);
  assert.deepEqual(explained.faults, []);
  await shot(explained.page, 'explained');
  await explained.page.close();
});

test('the page of a law draws its curve between the ranks that were asked', async () => {
  const { cells } = askedJson('law-sweep');
  const { page, faults } = await open(asked('law-sweep'));
  const series = await page.evaluate(() => window.becalm.drawn.get('slowdown-1').spec.series);
  assert.deepEqual(series.map((one) => one.name), ['1ms', '2ms', '5ms', '10ms', '20ms'].map((grain) => `grain ${grain}`));
  for (const [at, grain] of [1e6, 2e6, 5e6, 1e7, 2e7].entries()) {
    const points = new Map(series[at].points);
    assert.ok(points.size > 50, `${points.size} points`);
    for (const cell of cells.filter((one) => one.grain_ns === grain)) assert.equal(points.get(cell.ranks), cell.slowdown_ratio);
  }
  assert.deepEqual(faults, []);
  await page.close();
});

test('the page of jobs draws the cases of each, and by how much they differ from the first', async () => {
  const { jobs, rows } = askedJson('jobs');
  const { page, faults } = await open(asked('jobs'));
  const specs = await page.evaluate(() => Object.fromEntries([...window.becalm.drawn].map(([id, { spec }]) => [id, spec])));
  for (const time of ['qt', 'bt', 'qtbt']) {
    const own = rows.filter((row) => row.time === time);
    const { pairs } = specs[`bars-${time}`];
    assert.deepEqual(pairs.map((pair) => pair.name), jobs.map((job) => job.name));
    pairs.forEach((pair, at) => [own[at].average_ns, own[at].worst_ns].forEach((ns, which) => assert.ok(Math.abs(pair.values[which] - ns) <= 1, `${pair.name}: ${pair.values} are ${ns}`)));
    const [, later] = own;
    for (const [kind, change, verdict] of [['changes', later.average_change_ratio, later.average_verdict], ['worst', later.worst_change_ratio, later.worst_verdict]]) {
      const [row] = specs[`${kind}-${time}`].rows;
      assert.ok(Math.abs(row.ratio - 1 - change) < 1e-6, `${row.name}: ${row.ratio}`);
      assert.deepEqual([row.name, row.verdict], [later.job, verdict]);
    }
    assert.deepEqual(specs[`survival-${time}`].series.map((series) => series.name), jobs.map((job) => job.name));
  }
  const worst = await tableOf(page, 'Worst case');
  assert.deepEqual(worst.map((row) => [row[0], row[1]]), rows.map((row) => [row.time, row.job]));
  assert.deepEqual(worst.map((row) => Number(row[6])), rows.map((row) => row.max_ns));
  assert.deepEqual(faults, []);
  await page.close();
});

test('the page of a job holds the figures of the JSON document', async () => {
  const job = askedJson('job');
  const { page, faults } = await open(asked('job'));
  const rows = await tableOf(page, 'Phases, by the slowest rank of each');
  assert.deepEqual(rows.map((row) => [row[0], Number(row[6])]), job.rows.map((row) => [row.what, row.max_ns]));
  const points = (id) => page.evaluate((one) => window.becalm.drawn.get(one).spec.series.map((series) => series.points), id);
  assert.deepEqual(await points('compute'), [job.series.map((span) => [span.phase, span.compute_max_ns])]);
  assert.deepEqual(await points('total'), [job.series.map((span) => [span.phase, span.max_ns])]);
  assert.deepEqual(await points('collective'), [job.series.map((span) => [span.phase, span.collective_max_ns])]);
  assert.deepEqual(faults, []);
  await page.close();
});

test('a million phases stay small, with the longest of each part', async () => {
  const job = askedJson('job-long');
  const file = asked('job-long');
  assert.ok(statSync(file).size < 2 * MIB, `${statSync(file).size} bytes`);
  const { page, faults } = await open(file);
  const series = await page.evaluate(() => window.becalm.drawn.get('total').spec.series);
  assert.deepEqual(series.map((one) => [one.name, one.points.length]), [['longest', 1000], ['shortest', 1000]]);
  assert.equal(Math.max(...series[0].points.map((point) => point[1])), job.rows[2].max_ns);
  assert.equal(Math.min(...series[1].points.map((point) => point[1])), job.rows[2].min_ns);
  // Rank 1 has noise of its own, which the worst phases show and the mean of all does not.
  assert.match(await page.textContent('#latest'), /Rank 1 was the latest in [89]\d\.\d% of the worst hundredth of the phases, and in (49|50)\.\d% of all/);
  assert.deepEqual(faults, []);
  await page.close();
});

test('the page of a study draws each configuration over time, with the same axes', async () => {
  const file = html('study', ['study', '--from', join(bundles, 'node1.study'), '--phases', '1k']);
  const { page, faults } = await open(file);
  const series = await page.evaluate(() => [...window.becalm.drawn].filter(([id]) => id.startsWith('series-')).map(([id, { spec }]) => [id, spec]));
  assert.ok(series.length >= 2);
  const axes = series.map(([, spec]) => JSON.stringify([spec.y.min, spec.y.max]));
  assert.equal(new Set(axes).size, 1, axes.join(' '));
  assert.ok(series.every(([, spec]) => spec.series[0].points.length > 0 && spec.series[0].scattered));
  await checkDrawn(page, ['against', 'slowdown-1', 'surface', ...series.map(([id]) => id)]);
  await shot(page, 'study');
  assert.deepEqual(faults, []);
  await page.close();
});

// How many charts the page of each paper has.
const PAPERS = { beckman2007: 11, tsafrir2007: 41, radojkovic2008: 6, de2009: 7 };

// How many charts are lacking where a step could not be run: those of the steps that need root or becalm-mpi.
const LACKING = { tsafrir2007: { tick: 3, rates: 2 }, de2009: { study: 2, 'job-baseline': 2, figure8: 1 } };

// How many charts are lacking as the kernel's trace was not there, or no sample was missed by the tick.
function untraced(folder) {
  const read = (step) => (existsSync(join(folder, 'steps', `${step}.json`)) ? JSON.parse(readFileSync(join(folder, 'steps', `${step}.json`))).document : undefined);
  const grains = read('half')?.runs.filter((run) => run.cpus[0].tick_peaks === null).length ?? 0;
  return grains + (read('scheduler')?.rows.every((row) => row.overhead_ratio === null) ? 1 : 0);
}

// How many charts there are of what the processor counted, where it counts anything.
function counted(folder) {
  const rates = join(folder, 'steps', 'rates.json');
  const counters = existsSync(rates) ? JSON.parse(readFileSync(rates)).document.comparison_counters ?? [] : [];
  return 2 * new Set(counters.map((row) => row.event).filter((event) => ['l1d_read_misses', 'cache_misses'].includes(event))).size;
}

for (const [name, charts] of Object.entries(PAPERS)) {
  test(`${name}, found again quickly`, async () => {
    const folder = join(output, name);
    // An exit code other than 0 is an error of becalm: a figure that its own commands do not print, or a curve without points.
    const campaign = () => JSON.parse(execFileSync(becalm, ['paper', name, '--quick', '-o', folder, '--json'], { maxBuffer: 64 * MIB }));
    let found = campaign();
    // Whoever takes a CPU offline meanwhile ends a step: what failed is run again, and nothing else.
    if (readdirSync(join(folder, 'steps')).some((file) => file.endsWith('.err'))) found = campaign();
    assert.equal(found.counts.broken, 0);
    assert.ok(found.counts.figures > 2);
    for (const scheme of ['light', 'dark']) {
      const { page, faults } = await open(join(folder, 'index.html'), { scheme });
      const lacking = Object.entries(LACKING[name] ?? {}).filter(([step]) => !existsSync(join(folder, 'steps', `${step}.json`)));
      const drawn = charts - lacking.reduce((sum, [, number]) => sum + number, 0) - untraced(folder) + counted(folder);
      await checkDrawn(page, Array.from({ length: drawn }, (_, at) => `chart-${at + 1}`));
      // What the document says of each figure stands in a row of the page.
      const rows = await page.evaluate(() => {
        const isOfFigures = (table) => [...table.querySelectorAll('th')].some((title) => title.textContent === 'verdict');
        const tables = [...document.querySelectorAll('table')].filter(isOfFigures);
        return tables.flatMap((table) => [...table.querySelectorAll('tbody tr')]).map((row) => [...row.cells].map((cell) => cell.textContent));
      });
      const figures = found.items.flatMap((item) => item.figures);
      // A figure that is published for several machines has one row, with a column per machine.
      assert.ok(rows.length <= figures.length);
      const isNamed = ([name], { what }) => what.includes(name);
      const isPublished = (cell, { published }) => published === cell;
      const stands = (figure) => rows.some((row) => isNamed(row, figure) && row.slice(1).some((cell) => isPublished(cell, figure)));
      figures.forEach((figure) => assert.ok(stands(figure), `${figure.what}: ${figure.published}`));
      // The documents and recordings behind a figure are a click away.
      const links = await page.$$eval('dd a', (all) => all.map((link) => link.href));
      assert.equal(links.length, found.items.flatMap((item) => item.files).length);
      assert.ok(links.length > 0 && links.every((link) => existsSync(fileURLToPath(link))), links.join(' '));
      await shot(page, `${name}-${scheme}`);
      assert.deepEqual(faults, []);
      await page.close();
    }
  });
}

test('the page of a fleet holds the figures of the JSON document, with a map of nodes and time', async () => {
  const file = html('fleet', ['fleet', join(bundles, 'nodes.becalm')]);
  const document = json('fleet', join(bundles, 'nodes.becalm'));
  for (const [scheme, size] of [['light', DESK], ['dark', PHONE]]) {
    const { page, faults } = await open(file, { scheme, size });
    await checkDrawn(page, ['noisiest', 'node-time']);
    const found = await page.evaluate(() => ({
      verdict: window.document.querySelector('.verdict').textContent,
      nodes: [...window.document.querySelectorAll('#nodes tbody tr')].map((row) => row.cells[0].textContent.trim()),
      together: [...window.document.querySelectorAll('#together tbody tr')].map((row) => row.cells[0].textContent.trim()),
      remarks: window.document.getElementById('notes').textContent,
      wide: window.document.documentElement.scrollWidth > window.innerWidth,
    }));
    assert.ok(found.verdict.includes(document.summary), found.verdict);
    assert.deepEqual(found.nodes, document.nodes.map((node) => node.node));
    assert.deepEqual(found.together, document.together.map((source) => source.source));
    for (const { node } of document.problems) assert.ok(found.remarks.includes(node), `${node} is not in the remarks`);
    assert.equal(found.wide, false);
    await shot(page, `fleet-${scheme}`);
    assert.deepEqual(faults, []);
    await page.close();
  }
});

test('a recording of this machine', { skip: process.getuid() !== 0 && 'needs root' }, async () => {
  const run = join(output, 'recorded.becalm');
  const record = () => {
    rmSync(run, { recursive: true, force: true });
    return spawnSync(becalm, ['record', '--duration', '2s', '-o', run], { encoding: 'utf8' });
  };
  let recorded = record();
  // Whoever takes a CPU offline meanwhile cuts it short.
  if (recorded.status !== 0) recorded = record();
  assert.equal(recorded.status, 0, recorded.stderr);
  const file = html('recorded', ['report', run]);
  const { page, faults } = await open(file);
  await page.evaluate(() => window.becalm.openDetour(0, true));
  const drawn = await canvases(page);
  assert.ok(drawn.length >= 6 && drawn.every((one) => one.colors > 12), JSON.stringify(drawn));
  await shot(page, 'recorded');
  assert.deepEqual(faults, []);
  await page.close();
});

test('4.4 million detours make a small file that draws at once', { skip: !existsSync(join(bundles, 'huge.becalm')) && 'the run is not there' }, async () => {
  const start = performance.now();
  const file = report('huge');
  const made = performance.now() - start;
  const size = statSync(file).size;
  assert.ok(size < 3 * MIB, `${(size / MIB).toFixed(2)} MiB`);
  // The shortest of some tries, by turns with a page of few detours: other work on this machine only adds to both. Where it takes the CPUs all
  // the time, that page says how slow this machine is now.
  const ordinary = report('lively');
  const drawn = { huge: Infinity, ordinary: Infinity };
  const isAtOnce = () => drawn.huge < Math.max(2_000, 2 * drawn.ordinary);
  for (let tries = 0; tries < 5 && (tries === 0 || !isAtOnce()); tries += 1) {
    for (const [name, path] of [['ordinary', ordinary], ['huge', file]]) {
      const { page } = await open(path);
      drawn[name] = Math.min(drawn[name], Number(await page.evaluate(() => document.documentElement.dataset.drawnMs)));
      await page.close();
    }
  }
  console.log(`4.4 million detours: page made in ${(made / 1e3).toFixed(1)} s, ${(size / MIB).toFixed(2)} MiB, drawn after ${drawn.huge} ms, another page after ${drawn.ordinary} ms`);
  assert.ok(isAtOnce(), `drawn after ${drawn.huge} ms, another page after ${drawn.ordinary} ms`);
  const { page, faults } = await open(file);
  await checkDrawn(page, await expected(page, without('blame')));
  // Of so many fewer phases are replayed.
  const scale = await page.evaluate(() => ({
    text: document.querySelector('#scale').textContent,
    curves: window.becalm.drawn.get('slowdown').spec.series.map((one) => one.name),
  }));
  assert.match(scale.text, /takes about [0-9.]+ times as long/);
  assert.match(scale.text, /200 phases/);
  assert.equal(scale.curves[0], 'predicted');
  // The longest detours of all are there, as the table of the terminal has them.
  const longest = json('detours', join(bundles, 'huge'), '--longest', '20').detours.map((one) => one.duration_ns);
  const kept = await page.evaluate(() => window.becalm.drawn.get('detours').spec.durations.slice(0, 20));
  assert.deepEqual(kept, longest);
  await shot(page, 'huge');
  assert.deepEqual(faults, []);
  await page.close();
});
