import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, type Store, select } from '../../clickhouse/client.ts';
import type { EmbeddedLease } from '../../clickhouse/embedded/embedded.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { unload } from '../../ingest/history/unload.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { confirmDays } from '../../ingest/lists/confirmations.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import type { ChangesAnswer } from '../../src/report/changes/changes.ts';
import { embedded } from '../support/compiled.ts';
import { type EventLine, event, loadRows, ndjson } from '../support/events.ts';
import { environmentOf, listening, useCommands } from '../support/process.ts';
import { seededRandom, testRounds, testSeed } from '../support/random.ts';
import { createMigrated, type TestStore, useStore } from '../support/store.ts';

interface FollowerRun {
  readonly seed: number;
  readonly rounds: number;
  /** Kills the engine with SIGKILL and resolves when it is back. */
  readonly killEngine?: () => Promise<void>;
}

const account = 'followed';
const followed = [
  ['campaigns', 'device_creative_date'],
  ['ad_units', 'device_site_date'],
] as const;
const daysInUse = 90;

const dayOf = (n: number) => new Date(Date.UTC(2026, 0, 1 + n)).toISOString().slice(0, 10);

/**
 * Random loads, repeated and killed ones, unloads, confirmations, names and rebuilds, and beside them followers who
 * ask only for what changed: at the end of each round each has what the store has.
 */
function expectFollowersToKeepUp(db: TestStore, { seed, rounds, killEngine }: FollowerRun): void {
  const commands = useCommands();
  const random = seededRandom(seed);
  const below = (bound: number) => Math.floor(random() * bound);
  let folder = '';
  let env: Record<string, string> = {};
  let ask: Ask;
  let made = 0;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'adtally-follower-'));
    env = environmentOf(db.address);
    const token = await createToken(db.store, { account, label: '' });
    const url = await listening(
      commands.start(['serve'], {
        ...env,
        PORT: '0',
        RATE_LIMIT_REQUESTS: '100000000',
        ANSWER_TRUST_MS: '100',
      }),
    );
    const askOnce: Ask = async (path, body) => {
      const response = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      const text = await response.text();
      if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`);
      return JSON.parse(text).result;
    };
    // While an engine is on its way back, nothing answers.
    ask = async (path, body) => {
      for (let attempts = 40; attempts > 1; attempts--) {
        try {
          return await askOnce(path, body);
        } catch {
          await delay(250);
        }
      }
      return askOnce(path, body);
    };
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const eventsOf = (count: number, days: number): EventLine[] => {
    const first = below(daysInUse - days);
    return Array.from({ length: count }, () =>
      event({
        event_time: `${dayOf(first + below(days))}T12:00:00Z`,
        advertiser_id: below(4) ? account : 'other',
        publisher_id: below(4) ? account : 'other',
        campaign_id: `c${below(3)}`,
        ad_unit_id: `u${below(3)}`,
        site_id: `s${below(2)}`,
        device: below(2) ? 'tv' : 'mobile',
        spend: `${++made}.5`,
        revenue: `${made}.25`,
        confirmed: below(3) === 0,
      }),
    );
  };
  const fileOf = async (name: string, content: string) => {
    const path = join(folder, `${randomBytes(4).toString('hex')}-${name}`);
    await writeFile(path, content);
    return path;
  };
  const loaded: string[] = [];
  const unfinished: (readonly string[])[] = [];
  const run = async (args: readonly string[]) => {
    for (let attempt = 1; ; attempt++) {
      const { code, stderr } = await commands.run(args, env);
      if (code === 0) return;
      if (attempt === 4) throw new Error(`adtally ${args.join(' ')} ended with ${code}: ${stderr}`);
      await retrying(() => select(db.store, 'SELECT 1'));
    }
  };
  /** Runs a command that is killed on the way, and mostly once more in peace. */
  const killed = async (args: readonly string[], engine = false) => {
    const command = commands.start(args, env);
    await Promise.race([delay(300 + below(1_200)), command.ended]);
    if (engine) await killEngine?.();
    await command.kill('SIGKILL');
    // After the engine was killed, half of a chunk may be there until the load is repeated.
    if (engine || below(3) > 0) await run(args);
    else unfinished.push(args);
  };
  /** No rebuild runs while a chunk is in doubt: loads are finished first. */
  const finish = async () => {
    const isLoad = ([command]: readonly string[]) => command === 'ingest';
    for (const args of unfinished.splice(0).toSorted((a, b) => Number(isLoad(b)) - Number(isLoad(a))))
      await run(args);
  };
  const ingest = (path: string) => ['ingest', 'events', '--quiet', '--chunk-bytes', '40000', path];
  const load = async (count: number, days: number) => {
    const path = await fileOf('events.ndjson', ndjson(eventsOf(count, days)));
    loaded.push(path);
    return path;
  };
  const loadHere = (path: string) =>
    retrying(() =>
      loadEvents({ store: db.store, input: new LocalFile(path), chunkBytes: 40_000, now: () => new Date() }),
    );
  const loadIds = async () => {
    const query = `SELECT load_id AS id FROM loads AS l FINAL WHERE kind = 'events' AND state = 'loaded'`;
    return (await select<{ id: string }>(db.store, query)).map(({ id }) => id);
  };
  const anyLoad = async () => {
    const ids = await loadIds();
    return ids[below(ids.length)];
  };
  const range = (): [string, string] => {
    const first = below(daysInUse - 20);
    return [dayOf(first), dayOf(first + 1 + below(19))];
  };
  const kinds: Record<string, () => Promise<unknown>> = {
    load: async () => loadHere(await load(20, 3)),
    'larger load': async () => loadHere(await load(1_500, 40)),
    'killed load': async () => killed(ingest(await load(3_000, 40))),
    'repeated load': async () => loadHere(loaded[below(loaded.length)] ?? (await load(20, 3))),
    unload: async () => {
      const id = await anyLoad();
      if (id !== undefined) await unload(db.store, id, () => new Date());
    },
    'killed unload': async () => {
      const id = await anyLoad();
      if (id !== undefined) await killed(['unload', id]);
    },
    confirm: () => confirmDays(db.store, account, ...range()),
    'confirmed list': () =>
      loadRows(
        db.store,
        'confirmations',
        Array.from({ length: 5 }, () => [account, dayOf(below(daysInUse))]),
      ),
    rename: () =>
      loadRows(
        db.store,
        'campaigns',
        [0, 1].map((n) => [account, `c${n}`, `name ${below(3)}`]),
      ),
    rebuild: async () => {
      const [from, to] = range();
      await finish();
      await run(['rebuild', '--from', from, '--to', to]);
    },
    'rebuild of what was lost': async () => {
      for (const shard of db.shards) {
        await shard.command({
          query: `ALTER TABLE campaigns_device_creative_date DELETE WHERE device = 'tv' AND day = '${dayOf(below(daysInUse))}'`,
          clickhouse_settings: { mutations_sync: '2' },
        });
      }
      await finish();
      await killed(['rebuild']);
      await run(['rebuild']);
    },
    ...(killEngine && { 'killed engine': async () => killed(ingest(await load(3_000, 40)), true) }),
  };
  const names = Object.keys(kinds);

  test(`followers keep up: seed ${seed}, ${rounds} rounds`, { timeout: 7_200_000 }, async () => {
    const followers = followed.map(([family, breakdown]) => new Follower(ask, family, breakdown));
    const told: string[] = [];
    for (let round = 1; round <= rounds; round++) {
      const kind = names[round <= names.length ? round - 1 : below(names.length)] ?? 'load';
      told.push(kind);
      let over = false;
      const asking = Promise.all(
        followers.map(async (follower) => {
          // In the middle of it, too.
          while (!over) {
            await delay(below(1_200));
            if (!over) await follower.follow();
          }
        }),
      );
      try {
        await kinds[kind]?.();
      } finally {
        over = true;
        await asking;
      }
      await statementsEnded(db);
      for (const follower of followers) {
        await follower.follow();
        const differences = await follower.differences();
        expect(differences, `seed ${seed}, round ${round}, after ${told.slice(-5).join(', ')}`).toEqual([]);
      }
      if (round % 10 === 0)
        console.log(`${round} of ${rounds} rounds: the followers have what the store has`);
    }
  });
}

interface Row {
  readonly start_time: string;
}

/** Asks a service for a result. */
type Ask = (path: string, body: object) => Promise<unknown>;

/** What somebody knows who keeps a copy of a family's reports and fetches only what changed. */
class Follower {
  readonly #ask: Ask;
  readonly #family: string;
  readonly #breakdown: string;
  #since = '1970-01-01T00:00:00Z';
  /** By day: its rows in their order. */
  readonly rows = new Map<string, string[]>();
  readonly unconfirmed = new Set<string>();

  constructor(ask: Ask, family: string, breakdown: string) {
    this.#ask = ask;
    this.#family = family;
    this.#breakdown = breakdown;
  }

  async follow(): Promise<void> {
    const asked = await this.#ask(`/v1/${this.#family}/changes`, { changed_since: this.#since });
    const { days, changed_until, names_changed_at } = asked as ChangesAnswer;
    for (const { day, unconfirmed } of days) {
      if (unconfirmed) this.unconfirmed.add(day);
      else this.unconfirmed.delete(day);
    }
    const renamed = names_changed_at !== null && Date.parse(names_changed_at) >= Date.parse(this.#since);
    const wanted = new Set(days.map(({ day }) => day));
    if (renamed) for (const day of this.rows.keys()) wanted.add(day);
    await this.#pull(wanted, renamed ? undefined : this.#since);
    this.#since = changed_until;
  }

  /** @param since of the days whose rows are to come; undefined: of all in between */
  async #pull(wanted: ReadonlySet<string>, since: string | undefined): Promise<void> {
    if (wanted.size === 0) return;
    const days = [...wanted].sort();
    const pulled = await reportOf(this.#ask, this.#path, days[0] ?? '', days.at(-1) ?? '', since);
    for (const day of wanted) {
      const rows = pulled.rows.get(day);
      if (rows) this.rows.set(day, rows);
      else this.rows.delete(day);
    }
  }

  get #path(): string {
    return `/v1/${this.#family}/breakdowns/${this.#breakdown}`;
  }

  /** How the copy differs from what the store says now; empty if it does not. */
  async differences(): Promise<string[]> {
    const { rows, unconfirmed } = await reportOf(this.#ask, this.#path, '1970-01-01', '2149-06-06');
    const all = [...new Set([...rows.keys(), ...this.rows.keys()])].sort();
    return [
      ...all
        .filter((day) => rows.get(day)?.join() !== this.rows.get(day)?.join())
        .map(
          (day) => `${this.#path} of ${day}: the copy has ${this.rows.get(day)}, the store ${rows.get(day)}`,
        ),
      ...[...this.unconfirmed]
        .filter((day) => !unconfirmed.includes(day))
        .map((day) => `${day} is confirmed, not so in the copy`),
      ...unconfirmed
        .filter((day) => !this.unconfirmed.has(day))
        .map((day) => `${day} is unconfirmed, not so in the copy`),
    ];
  }
}

/** The rows of a report by their days. */
async function reportOf(
  ask: Ask,
  path: string,
  start_time: string,
  end_time: string,
  changed_since?: string,
) {
  const result = await ask(path, { start_time, end_time, changed_since });
  const report = result as { rows: Row[]; unconfirmed_revenue_dates: string[] };
  const rows = new Map<string, string[]>();
  for (const row of report.rows) {
    const of = rows.get(row.start_time) ?? [];
    of.push(JSON.stringify(row));
    rows.set(row.start_time, of);
  }
  return { rows, unconfirmed: report.unconfirmed_revenue_dates };
}

/** A killed loader leaves statements that still run. */
async function statementsEnded(db: TestStore): Promise<void> {
  const query = `SELECT count() AS running FROM system.processes WHERE query_kind IN ('Insert', 'Alter', 'Exchange', 'Rename')`;
  for (;;) {
    const counts = await Promise.all(
      db.shards.map((shard) => retrying(() => select<{ running: string }>(shard, query))),
    );
    if (counts.flat().every(({ running }) => Number(running) === 0)) return;
    await delay(50);
  }
}

/** `TEST_ROUNDS=20 npx vitest run --mode thorough test/report/follower.thorough.test.ts`; TEST_SHARDS=3: on a cluster. */
const rounds = testRounds(8);

if (Number(process.env.TEST_SHARDS ?? 1) > 1) {
  expectFollowersToKeepUp(useStore(), { seed: testSeed, rounds });
} else {
  describe('on an engine of its own', () => {
    let lease: EmbeddedLease | undefined;
    let store: Store | undefined;
    let folder = '';
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'adtally-followed-'));
      lease = await (await embedded()).acquireEmbedded(join(folder, 'data'));
      const address = { ...lease.address, database: 'adtally' };
      await createMigrated(address);
      store = connect(address);
    });
    afterAll(async () => {
      await store?.close();
      await lease?.release();
      await rm(folder, { recursive: true, force: true, maxRetries: 20 });
    });
    const opened = (): Store => {
      if (!store) throw new Error('the store is there from beforeAll on');
      return store;
    };
    const db: TestStore = {
      get address() {
        return opened().address;
      },
      get store() {
        return opened();
      },
      get shards() {
        return [opened()];
      },
    };
    const killEngine = async () => {
      const { pid } = JSON.parse(readFileSync(join(folder, 'data', 'clickhouse.json'), 'utf8'));
      process.kill(pid, 'SIGKILL');
      await retrying(() => select(opened(), 'SELECT 1'));
    };
    expectFollowersToKeepUp(db, { seed: testSeed, rounds, killEngine });
  });
}
