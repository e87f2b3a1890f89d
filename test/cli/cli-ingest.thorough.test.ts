import { appendFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { type EventLine, event, ndjson } from '../support/events.ts';
import { useLoader } from '../support/loader.ts';
import type { Ended } from '../support/process.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
let account: string;
const { file, run } = useLoader(db, (own) => {
  ({ account } = own);
});

const ingest = (args: readonly string[], input?: string | Buffer): Promise<Ended> =>
  run(['ingest', ...args], input);

/** Loads events, which must succeed without a rejected row. */
async function loaded(args: readonly string[], input?: string | Buffer) {
  const { code, stdout, stderr } = await ingest(['events', '--json', ...args], input);
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout) as { rows: number; repeated_rows: number };
}

/** Events of the current account that the store counts, in the raw table and in its reports alike. */
async function counted(): Promise<number> {
  const [row] = await select<{ raw: number; reported: number }>(
    db.store,
    `SELECT (SELECT toUInt32(count()) FROM events WHERE advertiser_id = {account:String}) AS raw,
            (SELECT toUInt32(sum(impressions)) FROM campaigns_date WHERE account_id = {account:String}) AS reported`,
    { account },
  );
  expect(row?.reported).toBe(row?.raw);
  return row?.raw ?? 0;
}

/** So many events of the current account. */
function events(count: number, fields: Partial<EventLine> = {}): EventLine[] {
  return Array.from({ length: count }, () => event({ advertiser_id: account, ...fields }));
}

const columns = ['event_id', 'event_time', 'event_type', 'advertiser_id', 'campaign_id', 'quantity'] as const;

function csv(lines: readonly EventLine[], end = '\n'): string {
  const rows = lines.map((line) => columns.map((name) => line[name] ?? '').join(','));
  return [columns.join(','), ...rows].map((row) => `${row}${end}`).join('');
}

test.each(['csv', 'ndjson'])('%s cut into other chunks the second time changes nothing', async (kind) => {
  const lines = events(60);
  const path = await file(`e.${kind}`, kind === 'csv' ? csv(lines) : ndjson(lines));
  expect(await loaded([path, '--chunk-bytes', '700'])).toMatchObject({ rows: 60 });
  for (const bytes of ['100', '900', '5000', '100000']) {
    expect(await loaded([path, '--chunk-bytes', bytes])).toMatchObject({ rows: 0, repeated_rows: 60 });
  }
  expect(await counted()).toBe(60);
});

test.each(['csv', 'ndjson'])('of a %s that has grown only what is new is counted', async (kind) => {
  const rows = (lines: EventLine[]) => (kind === 'csv' ? csv(lines).replace(/^.*\n/, '') : ndjson(lines));
  const path = await file(`e.${kind}`, `${kind === 'csv' ? csv([]) : ''}${rows(events(10)).trimEnd()}`);
  expect(await loaded([path, '--chunk-bytes', '700'])).toMatchObject({ rows: 10 });
  for (const more of [1, 7]) {
    await appendFile(path, `\n${rows(events(more)).trimEnd()}`);
    expect((await loaded([path, '--chunk-bytes', '2000'])).rows).toBe(more);
  }
  expect(await counted()).toBe(18);
});
