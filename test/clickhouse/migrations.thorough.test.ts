import { randomBytes } from 'node:crypto';
import { expect, inject, it } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { connect } from '../../clickhouse/client.ts';
import { checkSchema } from '../../clickhouse/consistency/check-schema.ts';
import { migrate, pendingMigrations } from '../../clickhouse/migrate/migrate.ts';

it.each([1, 2, 3, 4, 5])('several calls at once end in one whole schema (attempt %i)', async () => {
  const address = { ...inject('clickhouse'), database: `test_${randomBytes(6).toString('hex')}` };
  await Promise.all([migrate(address), migrate(address), migrate(address)]);
  const store = connect(address);
  try {
    expect(await checkSchema(store, catalog)).toEqual([]);
    expect(await pendingMigrations(store)).toEqual([]);
  } finally {
    await store.command({ query: `DROP DATABASE ${address.database} SYNC` });
    await store.close();
  }
});
