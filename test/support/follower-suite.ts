import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { unload } from '../../ingest/history/unload.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { confirmDays } from '../../ingest/lists/confirmations.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { type EventLine, event, loadRows, ndjson } from './events.ts';
import { type Ask, Follower, reportOf, statementsEnded } from './follower.ts';
import { environmentOf, listening, useCommands } from './process.ts';
import { seededRandom } from './random.ts';
import type { TestStore } from './store.ts';

export interface FollowerRun {
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
/** What a caller fetches again who is not told what changed. */
const lookBackDays = 30;
const daysInUse = 90;

const dayOf = (n: number) => new Date(Date.UTC(2026, 0, 1 + n)).toISOString().slice(0, 10);

/**
 * Random loads, repeated and killed ones, unloads, confirmations, names and rebuilds, and beside them followers who
 * ask only for what changed: at the end of each round each has what the store has.
 */
export function expectFollowersToKeepUp(db: TestStore, { seed, rounds, killEngine }: FollowerRun): void {
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
      return { result: JSON.parse(text).result, bytes: text.length };
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
    /** By round, of all followers: what they would have fetched each time they asked. */
    let lookBackBytes = 0;
    const told: string[] = [];
    for (let round = 1; round <= rounds; round++) {
      const kind = names[round <= names.length ? round - 1 : below(names.length)] ?? 'load';
      told.push(kind);
      let over = false;
      const before = followers.map(({ asked }) => asked);
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
      for (const [n, follower] of followers.entries()) {
        await follower.follow();
        const differences = await follower.differences();
        expect(differences, `seed ${seed}, round ${round}, after ${told.slice(-5).join(', ')}`).toEqual([]);
        const [family, breakdown] = followed[n] ?? ['', ''];
        const first = dayOf(daysInUse - lookBackDays);
        const path = `/v1/${family}/breakdowns/${breakdown}`;
        lookBackBytes +=
          (await reportOf(ask, path, first, dayOf(daysInUse))).bytes * (follower.asked - (before[n] ?? 0));
      }
      if (round % 10 === 0)
        console.log(`${round} of ${rounds} rounds: the followers have what the store has`);
    }
    const bytes = followers.reduce((sum, follower) => sum + follower.bytes, 0);
    const days = followers.reduce((sum, follower) => sum + follower.daysPulled, 0);
    console.log(
      `${rounds} rounds: the followers pulled ${bytes} bytes, ${days} days; ${lookBackDays} days each time are ${lookBackBytes} bytes`,
    );
  });
}
