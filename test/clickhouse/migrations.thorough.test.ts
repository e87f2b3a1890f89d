import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, inject, it } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { type Address, connect, type Store } from '../../clickhouse/client.ts';
import { checkSchema } from '../../clickhouse/consistency/check-schema.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { readMigrations, statementsForNode } from '../../clickhouse/migrate/migration-files.ts';
import { describeSchema } from '../../clickhouse/migrate/write-schema.ts';

let address: Address;
let store: Store;

beforeEach(() => {
  address = { ...inject('clickhouse'), database: `test_${randomBytes(6).toString('hex')}` };
  store = connect(address);
});

afterEach(async () => {
  await store.command({ query: `DROP DATABASE ${address.database} SYNC` });
  await store.close();
});

it('every migration can be interrupted after every statement and run again', async () => {
  await migrate(address);
  const whole = await describeSchema(store);
  await store.command({ query: `DROP DATABASE ${address.database} SYNC` });
  const server = connect({ ...address, database: 'default' });
  await server.command({ query: `CREATE DATABASE ${address.database}` }).finally(() => server.close());

  for (const { statements } of await readMigrations()) {
    for (const step of statements.keys()) {
      const begun = statements.slice(0, step + 1);
      for (const statement of begun) {
        for (const { query } of statementsForNode(statement, { ...address, timezone: 'UTC' })) {
          await store.command({ query });
        }
      }
    }
  }
  await migrate(address);
  expect(await describeSchema(store)).toBe(whole);
  expect(await checkSchema(store, catalog)).toEqual([]);
});
