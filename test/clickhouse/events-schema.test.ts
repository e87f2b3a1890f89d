import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { describeSchema, schemaFile } from '../../clickhouse/migrate/write-schema.ts';
import { eventColumns } from '../../ingest/event/fields.ts';
import { useStore } from '../support/store.ts';

const db = useStore();

test('clickhouse/schema.sql is what the migrations leave: npm run schema writes it', async () => {
  expect(readFileSync(schemaFile, 'utf8')).toBe(await describeSchema(db.store));
});

test('a field of an event has its column in every table and view that it passes', async () => {
  const columns = await select<{ table: string; names: string[] }>(
    db.store,
    `SELECT table, groupArray(name) AS names FROM system.columns
     WHERE database = currentDatabase() AND table IN ('incoming', 'incoming_staging', 'events', 'events_view')
     GROUP BY table`,
  );
  expect(columns).toHaveLength(4);
  for (const { table, names } of columns)
    expect(names, table).toEqual(expect.arrayContaining([...eventColumns]));
});
