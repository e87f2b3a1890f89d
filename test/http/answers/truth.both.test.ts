import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { catalog } from '../../../catalog/catalog.ts';
import { type Store, select } from '../../../clickhouse/client.ts';
import { rebuildRollups } from '../../../clickhouse/consistency/rebuild-rollups.ts';
import { placeAccount } from '../../../clickhouse/placement/place-account.ts';
import { retrying } from '../../../clickhouse/retry.ts';
import { unload } from '../../../ingest/history/unload.ts';
import { confirmDays } from '../../../ingest/lists/confirmations.ts';
import { createToken } from '../../../src/accounts/tokens.ts';
import { useCluster } from '../../support/cluster.ts';
import { event, load, loadRows, ndjson, withFile } from '../../support/events.ts';
import { thorough } from '../../support/mode.ts';
import { environmentOf, listening, postJson, useCommands } from '../../support/process.ts';
import { seededRandom } from '../../support/random.ts';
import { replaceBy } from '../../support/replace-suite.ts';
import { type TestStore, useClusterStore, useStore } from '../../support/store.ts';

interface TruthOptions {
  readonly seed: number;
  readonly changes: number;
  /** Services that answer, each a process of its own. */
  readonly services: number;
  /** Whether accounts can be placed on other shards. */
  readonly cluster?: boolean;
}

const accounts = ['a', 'b'] as const;

let made = 0;
const eventsOf = (account: string, n: number) =>
  ['2026-03-01', '2026-03-02', `2026-04-0${1 + (n % 9)}`].map((day) =>
    event({
      event_time: `${day}T12:00:00Z`,
      advertiser_id: account,
      publisher_id: account,
      site_id: `s${n % 3}`,
      device: n % 2 ? 'tv' : 'mobile',
      spend: `${++made}.5`,
      revenue: `${made}.25`,
    }),
  );

/** As ANSWER_TRUST_MS; what changes the store waits a little longer. */
const trustMs = 100;
const questions = accounts.flatMap((account) =>
  [
    ['/v1/campaigns', '2026-03-01', '2026-03-31'],
    ['/v1/campaigns/breakdowns/device_creative_date', '2026-02-01', '2026-04-30'],
    ['/v1/ad_units/breakdowns/site', '2026-03-01', '2026-03-02'],
    ['/v1/ad_units/breakdowns/date', '2026-01-01', '2026-12-31'],
  ].map(([path = '', start, end]) => ({
    account,
    path,
    body: JSON.stringify({ start_time: start, end_time: end }),
  })),
);

/** Random changes of a store beside callers of several services: no answer is older than the last change that was done. */
function expectTruth(db: TestStore, { seed, changes, services, cluster = false }: TruthOptions): void {
  const commands = useCommands();
  const urls: string[] = [];
  /** Computes every answer. */
  let computing = '';
  const tokens = new Map<string, string>();

  beforeAll(async () => {
    for (const account of accounts) tokens.set(account, await createToken(db.store, { account, label: '' }));
    const env = {
      ...environmentOf(db.address),
      PORT: '0',
      RATE_LIMIT_REQUESTS: '100000000',
      LOG_LEVEL: 'warn',
    };
    const start = (more = {}) => listening(commands.start(['serve'], { ...env, LOG_LEVEL: 'info', ...more }));
    computing = await start({ ANSWER_CACHE_MEGABYTES: '0' });
    for (let n = 0; n < services; n++) urls.push(await start({ ANSWER_TRUST_MS: `${trustMs}` }));
    await load(
      db.store,
      accounts.flatMap((account) => eventsOf(account, 0)),
    );
  });
  afterAll(() => commands.killAll());

  async function ask(url: string, question: number): Promise<{ text: string; cache: string }> {
    const { account, path, body } = questions[question] ?? { account: '', path: '', body: '' };
    const response = await postJson(`${url}${path}`, tokens.get(account), body);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`);
    return {
      text: text.replace(/"last_update_time":"[^"]+"/, ''),
      cache: response.headers.get('cache-status') ?? '',
    };
  }

  test(`no answer is older than promised: seed ${seed}, ${changes} changes`, {
    timeout: 1_200_000,
  }, async () => {
    const random = seededRandom(seed);
    const below = (bound: number) => Math.floor(random() * bound);
    /** The answer to each question after each change that was done. */
    const truths: string[][] = [
      await Promise.all(questions.map(async (_, n) => (await ask(computing, n)).text)),
    ];
    const progress = { begun: 0, done: 0, over: false };
    const wrong: string[] = [];
    /** Services that have answered from memory since the last change. */
    const fromMemory = new Set<string>();
    /** How each service has answered last. */
    const last = new Map<string, string>();

    const asker = async (url: string, first: number) => {
      for (let n = first; !progress.over; n++) {
        const question = n % questions.length;
        const oldest = progress.done;
        const { text, cache } = await ask(url, question);
        const newest = progress.begun;
        last.set(url, `${cache} at ${new Date().toISOString()}`);
        if (cache.includes('hit') && oldest === newest) fromMemory.add(url);
        checks.push({ question, oldest, newest, text });
        await delay(below(20));
      }
    };
    const checks: { question: number; oldest: number; newest: number; text: string }[] = [];
    const askers = urls.flatMap((url, n) => [0, 1, 2].map((k) => asker(url, n * 3 + k)));

    const told: string[] = [];
    const change = changesOf(db, cluster, below);
    try {
      for (let n = 1; n <= changes; n++) {
        progress.begun = n;
        fromMemory.clear();
        told.push(await change(n));
        await delay(trustMs + 5);
        progress.done = n;
        truths.push(
          await Promise.all(questions.map(async (_, question) => (await ask(computing, question)).text)),
        );
        const lastOnes = () => `after ${told.at(-1)}: ${JSON.stringify([...last])}`;
        await vi.waitFor(() => expect([...fromMemory].sort(), lastOnes()).toEqual([...urls].sort()), 60_000);
        await delay(below(400));
      }
    } finally {
      progress.over = true;
      await Promise.all(askers);
    }

    for (const { question, oldest, newest, text } of checks) {
      const of = (n: number) => truths[n]?.[question];
      const recent = truths.slice(oldest, newest + 1).map((truth) => truth[question] ?? '');
      if (recent.includes(text)) continue;
      // While a change is under way, an answer may show half of it, but nothing from before the last one. Half a load can
      // look like an earlier confirmation taken back: rows that are not yet new, days that are unconfirmed again.
      const isOld = truths.slice(0, oldest).some((truth) => truth[question] === text);
      if (newest > oldest && (!isOld || isHalfway(text, recent))) continue;
      wrong.push(
        `${questions[question]?.path} of ${questions[question]?.account}, after ${told[oldest - 1]}, before ${told[oldest]} (${oldest} to ${newest}): ${text.slice(0, 300)} instead of ${of(oldest)?.slice(0, 300)}`,
      );
    }
    expect(wrong).toEqual([]);
  });
}

const dates = /"unconfirmed_revenue_dates":\[([^\]]*)\]/;
const datesOf = (answer: string): string[] => (dates.exec(answer)?.[1] ?? '').split(',').filter(Boolean);

/** Whether an answer has the rows of one of these, and no unconfirmed day that none of them has, nor lacks one of all. */
function isHalfway(answer: string, truths: readonly string[]): boolean {
  const rowsOf = (each: string) => each.replace(dates, '');
  const found = datesOf(answer);
  return (
    truths.some((truth) => rowsOf(truth) === rowsOf(answer)) &&
    found.every((day) => truths.some((truth) => datesOf(truth).includes(day))) &&
    datesOf(truths[0] ?? '').every(
      (day) => found.includes(day) || truths.some((truth) => !datesOf(truth).includes(day)),
    )
  );
}

/** Returns what makes the n-th change and says which. */
function changesOf(
  db: TestStore,
  cluster: boolean,
  below: (bound: number) => number,
): (n: number) => Promise<string> {
  const { store } = db;
  const account = () => accounts[below(2)] ?? 'a';
  const name = () => `name ${randomBytes(4).toString('hex')}`;
  const loads = async () =>
    (
      await select<{ id: string }>(
        store,
        `SELECT load_id AS id FROM loads GROUP BY load_id HAVING argMax(kind, version) = 'events' AND argMax(state, version) = 'loaded'`,
      )
    ).map(({ id }) => id);
  const kinds: Record<string, (n: number) => Promise<unknown>> = {
    load: (n) => load(store, eventsOf(account(), n)),
    loads: (n) =>
      load(
        store,
        accounts.flatMap((each) => eventsOf(each, n)),
        300,
      ),
    confirm: () => confirmDays(store, account(), '2026-03-01', '2026-03-02'),
    rename: () => loadRows(store, 'campaigns', [[account(), 'campaign', name()]]),
    'rename sites': () =>
      loadRows(store, 'sites', [
        [account(), 's0', name()],
        [account(), 's1', name()],
      ]),
    rebuild: () => rebuildRollups(store, catalog, { from: '2026-03-01', to: '2026-03-31' }),
    restore: () => restorePartition(db.shards[below(db.shards.length)] ?? store),
    ...(cluster
      ? { place: () => placeAccount(store, catalog, { account: account(), shards: [1 + below(3)] }) }
      : {
          unload: async () =>
            Promise.all((await loads()).slice(0, 1).map((id) => unload(store, id, () => new Date()))),
          replace: async (n) => {
            const [id] = await loads();
            if (id === undefined) return;
            const content = ndjson(eventsOf(account(), n));
            await withFile('new.ndjson', content, (path) => replaceBy(store, { load: id }, path));
          },
        }),
  };
  const names = Object.keys(kinds);
  return async (n) => {
    // Each kind once before any comes again.
    const kind = names[n <= names.length ? n - 1 : below(names.length)] ?? 'load';
    await retrying(async () => kinds[kind]?.(n));
    return kind;
  };
}

/** A rollup's month is lost and comes back from a backup. */
async function restorePartition(store: Store): Promise<void> {
  const table = 'campaigns_device_creative_date';
  const [part] = await select(
    store,
    `SELECT 1 FROM system.parts WHERE database = currentDatabase() AND table = '${table}' AND active AND partition = '202603'`,
  );
  if (!part) return;
  const backup = `File('truth-${randomBytes(6).toString('hex')}')`;
  await store.command({ query: `BACKUP TABLE ${table} TO ${backup}` });
  await store.command({ query: `ALTER TABLE ${table} DROP PARTITION 202603` });
  await delay(trustMs + 5);
  await store.command({
    query: `RESTORE TABLE ${table} PARTITION '202603' FROM ${backup} SETTINGS allow_non_empty_tables = 1`,
  });
}

describe('on one node', () => {
  expectTruth(
    useStore(),
    thorough ? { seed: 2, changes: 9, services: 2 } : { seed: 1, changes: 4, services: 2 },
  );
});

describe.runIf(thorough)('on three shards', () => {
  expectTruth(useClusterStore(useCluster(3)), { seed: 5, changes: 8, services: 2, cluster: true });
});
