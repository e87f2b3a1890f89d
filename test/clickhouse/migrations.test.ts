import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { type Address, connect, type Store, select } from '../../clickhouse/client.ts';
import { checkSchema } from '../../clickhouse/consistency/check-schema.ts';
import { migrate, pendingMigrations, requireTimezone } from '../../clickhouse/migrate/migrate.ts';
import { readMigrations } from '../../clickhouse/migrate/migration-files.ts';
import { readSettings, writeSettings } from '../../clickhouse/settings.ts';
import { startOf } from '../support/compiled.ts';
import { event, load } from '../support/events.ts';
import { environmentOf } from '../support/process.ts';
import { useStatementsBetween } from '../support/statements-between.ts';
import { createMigrated } from '../support/store.ts';

const known = await readMigrations();
const all = known.map(({ name }) => name);
/** The one that makes the views which fill `events` and `rejected_rows`. */
const filling = known.findIndex(({ statements }) =>
  statements.some((each) => each.name === 'rejected_rows_view'),
);

let address: Address;
let store: Store;
let held = false;

/** A way to ClickHouse on which a migration never gets past the moment when a table lacks the view that fills it. */
const way = useStatementsBetween(
  () => address.url,
  async ({ query }) => {
    if (!query.includes('VIEW IF NOT EXISTS rejected_rows_view')) return;
    held = true;
    await new Promise(() => {});
  },
);

beforeEach(() => {
  address = { ...inject('clickhouse'), database: `test_${randomBytes(6).toString('hex')}` };
  store = connect(address);
});

afterEach(async () => {
  await store.command({ query: `DROP DATABASE IF EXISTS ${address.database} SYNC` });
  await store.close();
});

async function command(query: string): Promise<void> {
  await store.command({ query });
}

/** Every table, view and dictionary as the server would create it again. */
function schema(): Promise<{ name: string; create: string }[]> {
  return select(
    store,
    `SELECT name, replaceAll(create_table_query, currentDatabase(), 'db') AS create
     FROM system.tables WHERE database = currentDatabase() AND name NOT LIKE '.%' ORDER BY name`,
  );
}

async function expectWhole(): Promise<void> {
  expect(await checkSchema(store, catalog)).toEqual([]);
  expect(await pendingMigrations(store)).toEqual([]);
  const recorded = await select<{ name: string }>(
    store,
    'SELECT name FROM migrations FINAL ORDER BY version',
  );
  expect(recorded.map(({ name }) => name)).toEqual(all);
}

it('tries who reads names before it replaces a dictionary', async () => {
  await createMigrated(address);
  const before = await schema();
  const mistyped = { renewDictionaries: true, names: { user: 'nobody', password: 'mistyped' } };
  await expect(migrate(address, undefined, mistyped)).rejects.toThrow(
    /^dictionaries cannot read names as the user nobody, so they stay as they are: see CLICKHOUSE_NAMES_USER/,
  );
  expect(await schema()).toEqual(before);
  await command("SELECT dictGetOrDefault('campaign_names', 'name', ('a', 'b'), '')");
});

describe('migrate', () => {
  it('applies every migration once, and changes neither schema nor data when it is run again', async () => {
    expect(await migrate(address)).toEqual(all);
    await expectWhole();
    await load(store, [event(), event()]);
    const before = await schema();

    expect(await migrate(address)).toEqual([]);
    expect(await schema()).toEqual(before);
    await expectWhole();
    expect(await select(store, 'SELECT toUInt32(count()) AS events FROM events')).toEqual([{ events: 2 }]);
  });

  it('finishes what an interrupted run began, without losing what is loaded', async () => {
    await migrate(address);
    const whole = await schema();
    await load(store, [event()]);
    const version = known[filling]?.version;
    await command(`ALTER TABLE migrations DELETE WHERE version >= ${version} SETTINGS mutations_sync = 1`);
    for (const lost of ['rejected_rows_view', 'incoming_staging', 'tokens']) {
      await command(`DROP TABLE ${lost} SYNC`);
    }

    expect(await migrate(address)).toEqual(all.slice(filling));
    expect(await schema()).toEqual(whole);
    await expectWhole();
    expect(await select(store, 'SELECT toUInt32(count()) AS events FROM events')).toEqual([{ events: 1 }]);
  });

  it('waits for a process that migrates, and goes on with what it left when it is killed', async () => {
    const killed = spawnMigrate({ CLICKHOUSE_URL: way.url });
    await vi.waitUntil(() => held, { timeout: 60_000, interval: 20 });
    const waiting = migrate(address);
    expect(await Promise.race([waiting, delay(1_000, 'waits')])).toBe('waits');
    killed.kill('SIGKILL');
    expect(await waiting).toEqual(all.slice(filling));
    await expectWhole();
  });

  it('of two processes at once ends in one whole schema', async () => {
    const runs = await Promise.all([migrateInProcess(), migrateInProcess()]);
    expect(
      runs.map(({ code }) => code),
      runs.map(({ said }) => said).join(),
    ).toEqual([0, 0]);
    await expectWhole();
  });

  it('refuses a store on which a migration was applied that has been edited since', async () => {
    await createMigrated(address);
    const [first] = all;
    await command(`INSERT INTO migrations (version, name, checksum) VALUES (1, '${first}', 'other')`);
    const message = `migration ${first} was edited after it was applied: restore the file and put the change into a new one`;
    await expect(migrate(address)).rejects.toThrow(message);
    await expect(pendingMigrations(store)).rejects.toThrow(message);
  });

  it('refuses a store that is newer, and leaves it as it is', async () => {
    await createMigrated(address);
    await command(`INSERT INTO migrations (version, name, checksum) VALUES (9000, '9000_future', 'other')`);
    await command('DROP TABLE tokens SYNC');
    const before = await schema();
    await expect(migrate(address)).rejects.toThrow(
      'the store has migration 9000_future, which is newer than this adtally: update adtally, or go back to a backup of before, see docs/operations.md',
    );
    expect(await schema()).toEqual(before);
    const { code, said } = await migrateInProcess();
    expect(code).toBe(1);
    expect(said).toContain('9000_future');
  });
});

async function timezone(): Promise<string | undefined> {
  return (await readSettings(store))?.timezone;
}

it('the settings of a node that is added tell how many shards its cluster had first', async () => {
  await createMigrated(address);
  await command('DROP TABLE settings SYNC');
  const settings = { timezone: 'UTC', cluster: 'ads', shards: 4, firstShards: 3 };
  await writeSettings(store, settings);
  expect(await readSettings(store)).toEqual(settings);
  await writeSettings(store, { ...settings, shards: 5 });
  expect(await readSettings(store)).toEqual({ ...settings, shards: 5 });
});

describe('the report time zone', () => {
  it('is UTC unless told otherwise, and is then kept by a run that is told nothing', async () => {
    await migrate(address);
    expect(await timezone()).toBe('UTC');
    await command(`DROP DATABASE ${address.database} SYNC`);
    await migrate(address, 'America/New_York');
    expect(await migrate(address)).toEqual([]);
    expect(await timezone()).toBe('America/New_York');
    expect(await requireTimezone(store)).toBe('America/New_York');
  });

  it('of a store is not changed by another REPORT_TIMEZONE, compared by check, and not guessed', async () => {
    await expect(requireTimezone(store)).rejects.toThrow('has no settings: run adtally migrate');
    await migrate(address, 'America/New_York');
    const message =
      'REPORT_TIMEZONE=Europe/Vienna: the store was created with America/New_York, which cannot change; unset REPORT_TIMEZONE or use a new store';
    await expect(migrate(address, 'Europe/Vienna')).rejects.toThrow(message);
    await expect(requireTimezone(store, 'Europe/Vienna')).rejects.toThrow(message);
    const { code, said } = await migrateInProcess({ REPORT_TIMEZONE: 'Europe/Vienna' });
    expect(code).toBe(1);
    expect(said).toContain(message);
    expect(await timezone()).toBe('America/New_York');

    // By which days are computed, columns tell.
    await writeSettings(store, { timezone: 'Europe/Vienna', cluster: '', shards: 1, firstShards: 1 });
    expect(await checkSchema(store, catalog)).toEqual(
      ['events', 'incoming_staging'].map(
        (table) =>
          `${table}: column day is toDate(event_time, 'America/New_York'), the settings want toDate(event_time, 'Europe/Vienna')`,
      ),
    );

    await command('DROP TABLE settings SYNC');
    await expect(requireTimezone(store)).rejects.toThrow('restore a backup if it has events');
    await expect(migrate(address)).rejects.toThrow('restore a backup if it has events');
    expect(await checkSchema(store, catalog)).toEqual([expect.stringMatching(/^settings: /)]);
  });

  it('of a new store is refused where ClickHouse spells it otherwise, and is then not decided', async () => {
    for (const [zone, known] of Object.entries({ utc: 'UTC', 'europe/vienna': 'Europe/Vienna' })) {
      const { code, said } = await migrateInProcess({ REPORT_TIMEZONE: zone });
      expect([code, said]).toEqual([
        1,
        expect.stringContaining(`REPORT_TIMEZONE=${zone}: write ${known}, as ClickHouse does`),
      ]);
    }
    await migrate(address, 'Europe/Vienna');
    expect(await timezone()).toBe('Europe/Vienna');
  });

  it('of two first runs at once with different zones is that of one of them, and the other is refused', async () => {
    const zones = ['America/New_York', 'Europe/Vienna'];
    const runs = await Promise.allSettled(zones.map((zone) => migrate(address, zone)));
    const stored = await timezone();
    expect(zones).toContain(stored);
    expect(runs.map(({ status }) => status)).toEqual(
      zones.map((zone) => (zone === stored ? 'fulfilled' : 'rejected')),
    );
    await expectWhole();
  });

  it('of a first run that was interrupted is that of what it made, whatever the next run is told', async () => {
    await migrate(address, 'America/New_York');
    const whole = await schema();
    await command('ALTER TABLE migrations DELETE WHERE version >= 5 SETTINGS mutations_sync = 1');
    await command('DROP TABLE incoming_staging SYNC');

    await expect(migrate(address, 'Europe/Vienna')).rejects.toThrow('was created with America/New_York');
    await migrate(address);
    expect(await schema()).toEqual(whole);
    await expectWhole();
  });
});

describe('pendingMigrations', () => {
  it('lists what a store still needs, in order', async () => {
    await createMigrated(address);
    await command('ALTER TABLE migrations DELETE WHERE version IN (2, 5) SETTINGS mutations_sync = 1');
    expect((await pendingMigrations(store)).map(({ version }) => version)).toEqual([2, 5]);
  });
});

function spawnMigrate(env: NodeJS.ProcessEnv) {
  return spawn(process.execPath, [...startOf('src/cli'), 'migrate'], {
    env: { ...process.env, ...environmentOf(address), ...env },
  });
}

async function migrateInProcess(env: NodeJS.ProcessEnv = {}): Promise<{ code: unknown; said: string }> {
  const child = spawnMigrate(env);
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return { code, said };
}
