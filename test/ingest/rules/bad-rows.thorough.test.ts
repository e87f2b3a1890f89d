import { describe, expect, test } from 'vitest';
import { useLines } from '../../support/event-lines.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const lines = useLines(db);
const { counted, file, ingest, line, writers } = lines;

test('--max-rejects keeps the chunks before the one that has too many', async () => {
  const good = Array.from({ length: 60 }, () => line());
  const path = await file('e.csv', writers.csv([...good, line({ quantity: '0' })]));
  const { code, stderr } = await ingest('--max-rejects', '0', '--chunk-bytes', '1500', path);
  expect(code).toBe(1);
  expect(stderr).toContain(`${path} line 62: quantity`);
  expect(await counted()).toBeGreaterThan(20);
});

describe.each(['ndjson', 'csv', 'tsv'] as const)('%s lines that are no text', (kind) => {
  test.each([
    ['invalid UTF-8', 0xff, /line \d: the record is not valid UTF-8/],
    ['a NUL byte', 0, /line \d: the record holds a NUL byte/],
  ])('%s is rejected with its line, the others are loaded', async (_, byte, reason) => {
    const content = Buffer.from(writers[kind]([line(), line({ device: '~' }), line()]));
    content[content.indexOf('~')] = byte;
    const { code, stderr } = await ingest('--encoding', 'utf-8', await file(`e.${kind}`, content));
    expect(code).toBe(4);
    expect(stderr).toMatch(reason);
    expect(await counted()).toBe(2);
  });
});

test.each<[string, number, string, string]>([
  ['event_type,event_id,event_time,advertiser_id,campaign_id', 0, '', 'in any order'],
  ['event_id,event_time,event_type,more', 1, 'column more is not a field of an event', 'unknown'],
  ['event_id,event_time,event_type,event_id', 1, 'column event_id appears twice', 'repeated'],
  ['event_id,event_type,device', 1, 'column event_time is missing', 'missing'],
])('columns %s: exit code %i %s', async (header, wanted, reason, which) => {
  const cells: Record<string, string | undefined> = { ...line(), more: 'x' };
  const row = () => header.split(',').map((name) => (name === 'event_id' ? line().event_id : cells[name]));
  const path = await file('e.csv', `${header}\n${row()}\n${row()}\n`);
  const { code, stderr } = await ingest(path);
  expect({ code, faults: stderr.match(/column/g)?.length ?? 0 }).toEqual({ code: wanted, faults: wanted });
  expect(stderr).toContain(reason);
  expect(await counted()).toBe(wanted ? 0 : 2);
  if (which === 'unknown') expect((await ingest('--ignore-unknown', '--dry-run', path)).code).toBe(4);
});
