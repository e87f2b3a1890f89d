import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  countFields,
  eventColumns,
  eventFields,
  eventTypes,
  type FieldKind,
  fieldSpecs,
} from '../../catalog/events.ts';
import { select } from '../../clickhouse/client.ts';
import { describeSchema, schemaFile } from '../../clickhouse/migrate/write-schema.ts';
import { useLoadedFiles } from '../support/loaded-files.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const files = useLoadedFiles(db);

test('clickhouse/schema.sql is what the migrations leave: npm run schema writes it', async () => {
  expect(readFileSync(schemaFile, 'utf8')).toBe(await describeSchema(db.store));
});

test('a field of an event has its column in every table and view that it passes', async () => {
  const columns = await select<{ table: string; names: string[] }>(
    db.store,
    `SELECT table, groupArray(name) AS names FROM system.columns
     WHERE database = currentDatabase() AND table IN ('incoming', 'incoming_staging', 'events', 'events_view', 'past_events')
     GROUP BY table`,
  );
  expect(columns).toHaveLength(5);
  for (const { table, names } of columns) {
    // Of an event that left it is not kept which one it was.
    const kept = eventColumns.filter((name) => table !== 'past_events' || !/^event_/.test(name));
    expect(names, table).toEqual(expect.arrayContaining(kept));
  }
});

const columnTypes: Readonly<Partial<Record<FieldKind, RegExp>>> = {
  text: /^(LowCardinality\()?String/,
  time: /^DateTime64\(3, 'UTC'\)/,
  count: /^UInt128/,
  money: /^Decimal\(38, 6\)/,
  flag: /^Bool/,
};

test('the table of events has the types of its fields, and constraints as long as their texts may be', () => {
  const [table = ''] = /CREATE TABLE events\n[\s\S]*?;\n/.exec(readFileSync(schemaFile, 'utf8')) ?? [];
  for (const name of eventColumns) {
    const { kind, maxChars } = fieldSpecs[name];
    const [, type = ''] = new RegExp(`\`${name}\` (.*)`).exec(table) ?? [];
    expect(type, name).toMatch(columnTypes[kind] ?? /^$/);
    const longest = [...table.matchAll(new RegExp(`lengthUTF8\\(${name}\\) <= (\\d+)`, 'g'))].map(
      ([, most]) => Number(most),
    );
    expect(longest, name).toEqual(maxChars === undefined ? [] : [maxChars]);
    expect(table.includes(`isValidUTF8(${name})`), name).toBe(kind === 'text');
  }
});

test('who inserts events without the loader cannot store text that is not UTF-8, or is too long', async () => {
  const insert = (text: string) =>
    db.store.command({
      query: `INSERT INTO events (event_time, advertiser_id, campaign_id) SELECT now64(3), 'a', ${text}`,
    });
  await expect(insert("unhex('FF')")).rejects.toThrow('`text_utf8`');
  await expect(insert("repeat('ü', 129)")).rejects.toThrow('`text_length`');
  await insert("repeat('ü', 128)");
});

test('an INSERT without the loader cannot store amounts so large that a few make a sum wrap', async () => {
  const insert = (column: string, value: string) =>
    db.store.command({
      query: `INSERT INTO events (event_time, advertiser_id, campaign_id, ${column}) SELECT now64(3), 'a', 'c', ${value}`,
    });
  const count = `toUInt128('1${'0'.repeat(24)}')`;
  for (const name of countFields) {
    await expect(insert(name, count)).rejects.toThrow('`amounts`');
    await insert(name, `${count} - 1`);
  }
  const money = `toDecimal128('1${'0'.repeat(18)}', 6)`;
  for (const name of ['spend', 'revenue']) {
    for (const value of [money, `-${money}`]) {
      await expect(insert(name, value)).rejects.toThrow('`amounts`');
    }
    await insert(name, `toDecimal128('0.000001', 6) - ${money}`);
  }
});

const ids = ['advertiser_id', 'campaign_id', 'creative_id', 'publisher_id', 'ad_unit_id', 'site_id'] as const;

/** Records with every choice of ids, and with texts as long as they may be and a character longer. */
function recordsOfAllSides(): Record<string, string>[] {
  const time = { event_time: '2026-01-31T12:00:00Z', ad_requests: '1' };
  const chosen = Array.from({ length: 2 ** ids.length }, (_, set) =>
    Object.fromEntries(ids.filter((_, n) => set & (2 ** n)).map((name) => [name, name])),
  );
  const all = Object.fromEntries(ids.map((name) => [name, name]));
  const long = (['event_id', 'device', ...ids] as const).flatMap((name) =>
    [0, 1].map((more) => ({ ...all, [name]: 'ü'.repeat((fieldSpecs[name].maxChars ?? 0) + more) })),
  );
  return [...chosen, ...long].map((record, n) => ({ ...time, event_id: `sides ${n}`, ...record }));
}

/** Whether the table takes a record that does not come from the loader. */
async function constraintsPass(record: Readonly<Record<string, string>>): Promise<boolean> {
  const format = "SETTINGS date_time_input_format = 'best_effort' FORMAT JSONEachRow";
  const columns = Object.keys(record).join(', ');
  const query = `INSERT INTO events (${columns}) ${format} ${JSON.stringify(record)}`;
  const error = await db.store.command({ query }).then(() => undefined, String);
  if (error !== undefined) expect(error, query).toContain('Constraint');
  return error === undefined;
}

test('the loader, whose rows are not looked at again, stores what the constraints of events let pass', async () => {
  const records = recordsOfAllSides();
  const names = Object.keys(Object.assign({}, ...records));
  const rows = records.map((record) => names.map((name) => record[name] ?? ''));
  const passed: string[] = [];
  for (const record of records) if (await constraintsPass(record)) passed.push(record.event_id ?? '');
  // Of a side nothing, all, or all but the detail; not nothing of both. And each text that is not too long.
  expect(passed).toHaveLength(3 * 3 - 1 + 8);

  const values = rows.map((row) => `(${row.map((text) => `'${text}'`).join(', ')})`).join(', ');
  await files.writeByDuckDb('sides.parquet', `SELECT * FROM (VALUES ${values}) AS t(${names.join(', ')})`);
  const loads = [
    await files.load('sides.ndjson', records.map((record) => JSON.stringify(record)).join('\n')),
    await files.load('sides.csv', [names, ...rows].map((row) => row.join(',')).join('\n')),
    await files.load('sides.parquet'),
  ];
  for (const load of loads) {
    const stored = (await files.events(load)).map(({ event_id }) => event_id);
    expect(stored).toEqual(passed.toSorted());
  }
});

test('the table of docs/loading.md has every field, and says of each what is in the list of fields', () => {
  const docs = readFileSync(new URL('../../docs/loading.md', import.meta.url), 'utf8');
  const [, table = ''] = /\n\| field \| \| \|\n.*\n([\s\S]*?)\n\n/.exec(docs) ?? [];
  const named = (cell = '') => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  const rows = table.split('\n').map((row) => row.split('|').slice(1));
  expect(rows.flatMap(([fields]) => named(fields)).sort()).toEqual([...eventFields].sort());
  for (const [fields, , said = ''] of rows) {
    for (const name of eventFields.filter((field) => named(fields).includes(field))) {
      const { kind, maxChars, range } = fieldSpecs[name];
      const [, most] = /up to (\d+) characters/.exec(said) ?? [];
      expect(most, name).toBe(maxChars?.toString());
      if (countFields.some((field) => field === name)) expect(said).toContain(`numbers from ${range?.[0]}`);
      if (kind === 'money') expect(said, name).toContain('decimal, 6 places');
      if (kind === 'type') expect(named(said)).toEqual(expect.arrayContaining([...eventTypes]));
    }
  }
});
