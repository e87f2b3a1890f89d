import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { monthName } from '../../clickhouse/months.ts';
import { unload } from '../../ingest/history/unload.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { confirmDays } from '../../ingest/lists/confirmations.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import { replay } from '../../ingest/replay/replay.ts';
import { prune } from '../../src/cli/store/prune.ts';
import { close } from './closes.ts';
import { correctedExport } from './corrections.ts';
import { type EventLine, loadRows, ndjson } from './events.ts';
import { paths } from './oracle.ts';
import { usePast } from './past.ts';
import { randomEvents } from './random-events.ts';
import { replaceBy } from './replace-suite.ts';
import type { TestService } from './service.ts';
import type { TestStore } from './store.ts';

const accounts = ['both', 'advertiser', 'publisher'] as const;
const now = () => new Date();
const seeds = fc.nat(2 ** 20);
const day = fc.integer({ min: 1, max: 28 }).map((n) => `2026-0${1 + (n % 3)}-${`${n}`.padStart(2, '0')}`);
const account = fc.constantFrom(...accounts);

/** What changes reports. */
const steps = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('load' as const), seed: seeds }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('unload' as const), of: seeds }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('again' as const), of: seeds }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('replace' as const), of: seeds, seed: seeds }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('replace days' as const),
      account,
      from: day,
      to: day,
      seed: seeds,
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('replay' as const), of: seeds }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('confirm' as const), account, from: day, to: day }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('rename' as const), account, name: seeds }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('close' as const),
      account,
      month: fc.constantFrom(202601, 202602, 202603),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('prune' as const),
      until: fc.constantFrom('2026-03', '2026-04'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('rebuild' as const) }) },
);
export type Step = typeof steps extends fc.Arbitrary<infer T> ? T : never;

export const stepLists = (maxLength: number) =>
  fc.array(steps, { minLength: Math.ceil(maxLength / 2), maxLength });

interface Given {
  readonly at: string;
  readonly after: string;
  readonly account: string;
  readonly path: string;
  readonly body: object;
  readonly accept: string;
  readonly answer: string;
}

export interface PastRound {
  /** How many answers there were once more, and how many could not be told. */
  readonly told: number;
  readonly untold: readonly { readonly after: string; readonly at: string; readonly why: string }[];
  readonly wrong: readonly string[];
}

/** Does these steps on a store, keeps answers that are given between them, and asks for each once more as of its time. */
export async function pastRound(
  db: TestStore,
  service: TestService,
  list: readonly Step[],
  run: number,
): Promise<PastRound> {
  const folder = await mkdtemp(join(tmpdir(), 'adtally-past-'));
  try {
    const loads: { id: string; path: string }[] = [];
    const given: Given[] = [];
    let files = 0;
    const fileOf = async (events: readonly EventLine[]) => {
      const path = join(folder, `${++files}.ndjson`);
      await writeFile(path, ndjson(events));
      return path;
    };
    const made = (seed: number) =>
      randomEvents(seed, 40).map((line, n) => ({
        ...line,
        event_id: `${run}-${files}-${n}`,
        ...(n % 9 === 8 && { quantity: 0 }),
      }));
    const loadFile = async (path: string) => {
      const { loadId = '' } = await loadEvents({
        store: db.store,
        input: new LocalFile(path),
        chunkBytes: 6_000,
        now,
      });
      loads.push({ id: loadId, path });
    };
    const pick = (of: number) => loads[of % Math.max(loads.length, 1)];
    const perform = async (step: Step): Promise<void> => {
      switch (step.kind) {
        case 'load':
          return loadFile(await fileOf(made(step.seed)));
        case 'unload': {
          const load = pick(step.of);
          if (load) await unloadReplays(db.store, load.id);
          if (load) await unload(db.store, load.id, now);
          return;
        }
        case 'again': {
          const load = pick(step.of);
          if (load) await loadFile(load.path);
          return;
        }
        case 'replace': {
          const load = pick(step.of);
          if (load) await unloadReplays(db.store, load.id);
          if (load) await replaceBy(db.store, { load: load.id }, await fileOf(made(step.seed)));
          return;
        }
        case 'replace days': {
          const [from = '', to = ''] = [step.from, step.to].sort();
          const lines = made(step.seed).map((line) => ({
            ...line,
            event_time: `${from}T12:00:00Z`,
            advertiser_id: step.account,
            campaign_id: line.campaign_id ?? 'c1',
          }));
          const target = { account: step.account, days: { from, to } };
          await replaceBy(db.store, target, await fileOf(lines));
          return;
        }
        case 'replay': {
          const load = pick(step.of);
          if (!load) return;
          const path = await correctedExport(db.store, load.id, [], folder, 'ndjson');
          const text = (await readFile(path, 'utf8')).replaceAll('"quantity":"0"', '"quantity":"3"');
          await writeFile(path, text);
          if (text.trim()) await replay(db.store, load.id, new LocalFile(path), now);
          return;
        }
        case 'confirm': {
          const [from = '', to = ''] = [step.from, step.to].sort();
          await confirmDays(db.store, step.account, from, to);
          return;
        }
        case 'rename':
          await loadRows(db.store, 'campaigns', [[step.account, 'c1', `Campaign ${step.name % 5} "/é`]]);
          await loadRows(db.store, 'sites', [[step.account, 'c2', `Site ${step.name % 5}`]]);
          await loadRows(db.store, 'creatives', [[step.account, 'c1', `Creative ${step.name % 5}`]]);
          return;
        case 'close':
          return close(db.store, monthName(step.month), step.account, { anyway: true });
        case 'prune':
          return prune(db.store, { keep: 1, anyway: true }, new Date(`${step.until}-15T00:00:00Z`));
        case 'rebuild':
          await rebuildRollups(db.store, catalog);
      }
    };
    const past = usePast(db, service);
    const asked = bodies(run);
    for (const [n, step] of list.entries()) {
      const after = JSON.stringify(step);
      await perform(step).catch((error: unknown) => {
        if (!(error instanceof Error) || !refusals.test(error.message)) throw error;
      });
      for (const [path, body, accept] of [asked(2 * n), asked(2 * n + 1)]) {
        const account = accounts[given.length % accounts.length] ?? 'both';
        const at = await past.now();
        const response = await service.post(path, account, body, { accept });
        expect(response.status).toBe(200);
        given.push({ at, after, account, path, body, accept, answer: await answerOf(response) });
      }
    }
    const untold = [];
    const wrong = [];
    for (const { at, after, account, path, body, accept, answer } of given) {
      const response = await service.post(path, account, { ...body, as_of: at }, { accept });
      if (response.status === 409) {
        const { code, detail } = (await response.json()) as { code: string; detail: string };
        expect(code).toBe('as_of_too_old');
        untold.push({ after, at, why: detail });
      } else {
        const text = await answerOf(response);
        if (response.status !== 200 || text !== answer)
          wrong.push(
            `${at} after ${after}: ${path} of ${account} ${JSON.stringify(body)} ${accept}\n${answer}\n${text}`,
          );
      }
    }
    return { told: given.length - untold.length - wrong.length, untold, wrong };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A load is taken back or replaced after its replays. */
async function unloadReplays(store: Store, load: string): Promise<void> {
  const query =
    "SELECT load_id AS id FROM loads FINAL WHERE kind = 'replay' AND file = {file:String} ORDER BY id DESC";
  for (const { id } of await select<{ id: string }>(store, query, { file: `replay of ${load}` }))
    await unload(store, id, now);
}

/** What the loader and the commands refuse, rightly. */
const refusals =
  /was replaced before|stands in the place|prune has folded|no load of files|is no load|have no events|not of |nothing to close|no rows|cannot be replaced|already loaded|not closed/;

async function answerOf(response: Response): Promise<string> {
  const told = ['adtally-unconfirmed-revenue-dates', 'adtally-totals', 'adtally-row-count'];
  const text = (await response.text()).replace(/"last_update_time":"[^"]*",/, '');
  return [...told.map((name) => response.headers.get(name)), text].join('\n');
}

const quarter = { start_time: '2026-01-01', end_time: '2026-03-31' };
function bodies(run: number): (n: number) => readonly [path: string, body: object, accept: string] {
  return (n) => {
    const path = paths[(n * 7 + run * 5) % paths.length] ?? '/v1/campaigns';
    const dated = path.endsWith('date');
    const options = [
      {},
      { totals: true, ids: true },
      { filters: { device: ['mobile', 'unknown'] }, limit: 5 },
      {
        compare_to: dated ? 'previous_year' : 'previous_month',
        start_time: '2026-02-03',
        end_time: '2026-02-20',
      },
      dated ? { time_grain: 'week' } : { metrics: ['impressions'] },
      path.includes('campaigns')
        ? { filters: { campaign: ['Campaign 1 "/é', 'c2'] } }
        : { filters: { ad_unit: ['c1'] } },
    ];
    const accept = ['application/json', 'text/csv', 'application/x-ndjson'][n % 3] ?? '';
    return [path, { ...quarter, ...options[(n + run) % options.length] }, accept];
  };
}
