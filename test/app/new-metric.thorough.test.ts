import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Command, checkout, type Ended, listening, postJson, startProcess } from '../support/process.ts';
import { useBrowser } from './browser.ts';
import { visibleRows, whole } from './pages.ts';

/**
 * What the next engineer does for a new metric, `video_views` by event type `view`, and a new dimension, `browser`: the
 * entries of the catalog, the words that the compiler then asks for, one migration.
 */

const copy = mkdtempSync(join(tmpdir(), 'adtally-new-metric-'));
const running: Command[] = [];
const browser = useBrowser();
let service = '';
let token = '';

afterAll(async () => {
  await Promise.all(running.map((command) => command.kill('SIGINT')));
  rmSync(copy, { recursive: true, maxRetries: 20 });
});

function insert(file: string, after: string, added: string): void {
  const path = join(copy, file);
  const text = readFileSync(path, 'utf8');
  expect(text, `${file} no longer has ${after}`).toContain(after);
  writeFileSync(
    path,
    text.replace(after, () => after + added),
  );
}

const inCopy = (script: string): Command => {
  const command = startProcess('sh', ['-c', `cd ${copy} && ${script}`], {
    CLICKHOUSE_URL: '',
    DATA_DIR: join(copy, 'data'),
    PORT: '0',
  });
  running.push(command);
  return command;
};
const adtally = (args: string): Promise<Ended> => inCopy(`node --import tsx src/cli.ts ${args}`).ended;
/** The service, and the page, which has a configuration of its own. */
const compiled = () => inCopy('npx tsc --noEmit; service=$?; npx tsc -p src/app && exit $service').ended;

beforeAll(() => {
  for (const part of ['catalog', 'clickhouse', 'ingest', 'src', 'package.json', 'tsconfig.json'])
    cpSync(join(checkout, part), join(copy, part), { recursive: true });
  symlinkSync(join(checkout, 'node_modules'), join(copy, 'node_modules'));
});

test('it does not compile until everything that needs a word about it has one', async () => {
  insert(
    'catalog/events.ts',
    "  conversions: { kind: 'count', range: countRange, eventType: 'conversion' },",
    "\n  video_views: { kind: 'count', range: countRange, eventType: 'view' },",
  );
  insert(
    'catalog/events.ts',
    "  device: { kind: 'text', maxChars: 32 },",
    "\n  browser: { kind: 'text', maxChars: 32 },",
  );
  insert('catalog/catalog.ts', "conversions: count('conversions'),", " video_views: count('video_views'),");
  insert('catalog/catalog.ts', "columns: ['cpa', 'cpc', 'cpm', 'impressions', ", "'video_views', ");
  insert('catalog/catalog.ts', "dimensions: ['device', 'creative'", ", 'browser'");
  insert(
    'catalog/catalog.ts',
    "      columns: [{ id: 'device' }],\n    },",
    "\n    browser: { key: 'browser', storage: 'LowCardinality(String)', columns: [{ id: 'browser' }] },",
  );

  const { code, stdout } = await compiled();
  expect(code).not.toBe(0);
  expect([...new Set(stdout.match(/^[\w/.-]+(?=\(\d)/gm))].sort()).toEqual([
    'src/app/words/de.ts',
    'src/app/words/en.ts',
    'src/app/words/ja.ts',
    'src/http/openapi/reports.ts',
  ]);
  expect(stdout).toContain('video_views');
  expect(stdout).toContain('browser');

  for (const [language, views, browser, browsers] of [
    ['en', 'Video views', 'Browser', 'Browsers'],
    ['de', 'Videoaufrufe', 'Browser', 'Browser'],
    ['ja', '動画再生数', 'ブラウザ', 'ブラウザ別'],
  ] as const) {
    const file = `src/app/words/${language}.ts`;
    // English says of which ids these are the words; the others have the words of English.
    const wordsOf = (ids: string) => (language === 'en' ? `each<${ids}>({` : '{');
    insert(
      file,
      `\n  columns: ${wordsOf('Column')}`,
      `\n    video_views: '${views}',\n    browser: '${browser}',`,
    );
    insert(file, `  dimensions: ${wordsOf('BreakdownId')}`, ` browser: '${browser}',`);
    insert(file, `  parts: ${wordsOf('BreakdownId')}`, ` browser: '${browsers}',`);
  }
  insert(
    'src/http/openapi/reports.ts',
    "  device: ['desktop', 'mobile'],",
    "\n  browser: ['firefox', 'chromium'],",
  );
  insert('src/http/openapi/reports.ts', '  conversions: 87,', '\n  video_views: 310,');
  expect(await compiled()).toMatchObject({ code: 0 });
});

/** Prints the migration as CONTRIBUTING.md says it: what each table and view lacks. */
const writeMigration = `
const { catalog } = await import('./catalog/catalog.ts');
const { eventColumns } = await import('./catalog/events.ts');
const { closedTable } = await import('./catalog/breakdowns.ts');
const { rollupDdl, rollups, selectOf } = await import('./clickhouse/rollups.ts');
const fields = (count) => "ADD COLUMN IF NOT EXISTS browser LowCardinality(String) AFTER device, ADD COLUMN IF NOT EXISTS video_views " + count + " DEFAULT 0 AFTER conversions";
const alter = (table, count) => "ALTER TABLE " + table + " " + fields(count) + ";";
console.log([
  alter('events', 'UInt128'), alter('past_events', 'UInt128'), alter('incoming', 'UInt64'), alter('incoming_staging', 'UInt64'),
  ...rollups(catalog).filter(({ family }) => family === 'campaigns').map((rollup) => rollup.sortingKey.includes('browser')
    ? rollupDdl(rollup)
    : "ALTER TABLE " + rollup.table + " ADD COLUMN IF NOT EXISTS video_views " + rollup.columns.find(({ name }) => name === 'video_views').type + ";\\n\\nALTER TABLE " + rollup.view + " MODIFY QUERY " + selectOf(rollup) + ";"),
  alter(closedTable('campaigns'), 'UInt128').replace(/;$/, ", MODIFY ORDER BY (account_id, day, campaign_id, device, creative_id, revision, browser);"),
  "ALTER TABLE events_view MODIFY QUERY SELECT " + eventColumns.join(', ') + ", chunk, loaded_at FROM incoming WHERE empty(faults);",
].join('\\n\\n'));
`;

test('after one migration it is loaded, reported, filtered, told by OpenAPI and shown by the page', async () => {
  writeFileSync(join(copy, 'write-migration.mts'), writeMigration);
  const written = await inCopy('node --import tsx write-migration.mts').ended;
  expect(written.stderr).toBe('');
  writeFileSync(join(copy, 'clickhouse/migrations/9000_browser.sql'), written.stdout);
  expect(await adtally('migrate')).toMatchObject({ code: 0 });
  expect(await adtally('check')).toMatchObject({ code: 0, stdout: '' });

  const event = { event_time: '2026-03-01T12:00:00Z', advertiser_id: 'acme', campaign_id: 'c1' };
  const lines = [
    { ...event, browser: 'firefox', event_type: 'view', quantity: 5 },
    { ...event, browser: 'firefox', impressions: 40, video_views: 2 },
    { ...event, browser: 'chromium', event_type: 'impression' },
  ].map((line) => JSON.stringify(line));
  writeFileSync(join(copy, 'events.ndjson'), lines.join('\n'));
  expect(await adtally('ingest events events.ndjson')).toMatchObject({ code: 0 });
  expect(await adtally('verify')).toMatchObject({ code: 0 });
  token = (await adtally('token create acme')).stdout.trim();
  service = await listening(inCopy('exec node --import tsx src/cli.ts serve'));

  const ask = async (path: string, more = {}) => {
    const response = await postJson(`${service}${path}`, token, {
      start_time: '2026-03-01',
      end_time: '2026-03-31',
      ...more,
    });
    expect(response.status, path).toBe(200);
    return ((await response.json()) as { result: { rows: Record<string, unknown>[] } }).result.rows;
  };
  expect(await ask('/v1/campaigns')).toMatchObject([{ impressions: 41, video_views: 7 }]);
  expect(await ask('/v1/campaigns/breakdowns/device_browser_date')).toMatchObject([
    { browser: 'chromium', video_views: 0 },
    { browser: 'firefox', impressions: 40, video_views: 7 },
  ]);
  expect(await ask('/v1/campaigns/breakdowns/date', { filters: { browser: ['chromium'] } })).toMatchObject([
    { impressions: 1, video_views: 0 },
  ]);
  const document = await (await fetch(`${service}/openapi.json`)).text();
  for (const word of ['"video_views"', '"browser"', '/v1/campaigns/breakdowns/device_browser_date'])
    expect(document).toContain(word);

  const page = await browser.open(`${service}/app#token=${token}&days=2026-03-01/2026-03-31`);
  await whole(page);
  expect(await page.getByText('Browser', { exact: true }).count()).toBeGreaterThan(0);
  expect(Object.keys((await visibleRows(page))[0] ?? {})).toContain('Video views');
});
