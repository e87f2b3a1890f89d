import { expect, test } from 'vitest';
import { type Store, select } from '../../clickhouse/client.ts';
import { plainReading } from '../../ingest/event/reading.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { loadFiles } from '../../ingest/load/load-files.ts';
import { type Replaced, replaceEvents } from '../../ingest/replace/replace-events.ts';
import { describeTarget, type Target } from '../../ingest/replace/target.ts';
import { ndjson } from './events.ts';
import { heldAt } from './held.ts';
import { requireAgreement } from './rebuilt.ts';
import type { TestService } from './service.ts';
import type { TestStore } from './store.ts';
import { failingAt, ofTwoMonths, type Unloads } from './unloads.ts';

/** Loads files in the place of a target. */
export function replaceBy(store: Store, target: Target, ...paths: string[]): Promise<Replaced> {
  const now = () => new Date();
  const common = { store, now, dryRun: true, readingOf: plainReading };
  const files = paths.map((path) => new LocalFile(path));
  return replaceEvents({
    ...{ store, target, now, files: paths.join(' '), dryRun: false, onTotals: () => {} },
    stage: (hold) => loadFiles(files, { ...common, ...(hold && { hold }), chunkBytes: 100_000 }),
  });
}

/** Reports of several rollups; each tells the impressions of its range. */
const paths = [
  '/v1/campaigns',
  '/v1/campaigns/breakdowns/date',
  '/v1/campaigns/breakdowns/device',
  '/v1/campaigns/breakdowns/device_creative_date',
  '/v1/ad_units/breakdowns/site_date',
  '/v1/ad_units/breakdowns/device',
];

/**
 * One report after the other of an account that is both, from before the first change of a replacement until it is done; what
 * each path told, in order.
 */
async function reading(
  { store }: TestStore,
  service: TestService,
  account: string,
  replace: (store: Store) => Promise<unknown>,
): Promise<number[][]> {
  const held = heldAt(store, /INSERT INTO withdrawn_chunks/);
  let done = false;
  const finished = replace(held.store).finally(() => {
    done = true;
  });
  await held.reached;
  const tell = async (path: string) => {
    const { rows } = await service.report(path, account, '2026-03-01', '2026-04-30');
    return rows.reduce((sum, row) => sum + Number(row.impressions), 0);
  };
  const before = await Promise.all(paths.map(tell));
  held.release();
  const read = async (path: string, n: number) => {
    const seen = before.slice(n, n + 1);
    for (let last = false; !last; ) {
      last = done;
      seen.push(await tell(path));
    }
    return seen;
  };
  const [seen] = await Promise.all([Promise.all(paths.map(read)), finished]);
  return seen;
}

const ranges = {
  'a month': [
    ['2026-03-01', '2026-03-02'],
    ['2026-03-02', '2026-03-03'],
  ],
  'two months': [
    ['2026-03-01', '2026-04-01'],
    ['2026-03-30', '2026-04-02'],
  ],
} as const;

export function replacedBesideReaders(
  db: TestStore,
  service: TestService,
  loads: Unloads,
  range: keyof typeof ranges,
): void {
  const [before, after] = ranges[range];
  const ofBoth = (count: number, days: readonly string[], device: string) =>
    Array.from({ length: count }, (_, n) => ({
      event_id: `${device}-${n}`,
      event_time: `${days[n % days.length]}T12:00:00Z`,
      event_type: 'impression',
      advertiser_id: loads.account,
      campaign_id: `c${n % 50}`,
      creative_id: `x${n % 7}`,
      device,
      publisher_id: loads.account,
      ad_unit_id: `u${n % 20}`,
      site_id: `s${n % 3}`,
    }));
  const text = (lines: readonly object[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join('');

  test(`reports of ${range} show the old events or the new ones, and never the old ones after the new`, async () => {
    await loads.load(await loads.file('others.ndjson', text(ofBoth(100, before, 'tv'))));
    const old = await loads.file('old.ndjson', text(ofBoth(1_000, before, 'mobile')));
    const id = await loads.load(old, 100_000);
    const path = await loads.file('new.ndjson', text(ofBoth(2_000, after, 'desktop')));
    const seen = await reading(db, service, loads.account, (store) => replaceBy(store, { load: id }, path));
    for (const [n, each] of seen.entries()) {
      expect(each, paths[n]).toEqual([...each].sort((a, b) => a - b));
      expect([...new Set(each)], paths[n]).toEqual([1_100, 2_100]);
    }
    await requireAgreement(db.store);
    const held = await select(db.store, 'SELECT DISTINCT load_id FROM incoming_staging');
    expect(held).toEqual([]);
  });
}

const steps = [
  /INSERT INTO withdrawn_chunks/,
  /EXCHANGE TABLES .* AND events$/,
  /EXCHANGE TABLES .* AND campaigns_device_date$/,
  /ALTER TABLE load_chunks UPDATE left_out_rows/,
  /ALTER TABLE chunk_days DELETE/,
  /INSERT INTO chunk_days/,
  /INSERT INTO loads \(\* EXCEPT/,
];

export function completedAfterEachStep(db: TestStore, loads: Unloads, what: 'a load' | 'days'): void {
  test(`replacing ${what}, ended after each of its steps in turn, is completed by the same command`, async () => {
    const { file, load, events, account } = loads;
    const others = events(10, { event_time: '2026-05-01T12:00:00Z' });
    await load(await file('others.ndjson', ndjson(others)));
    const old = await file('old.ndjson', ndjson(ofTwoMonths(events(20))));
    const id = await load(old, 3_000);
    const path = await file('new.ndjson', ndjson(ofTwoMonths(events(25))));
    const days = { from: '2026-03-01', to: '2026-04-30' };
    const target = what === 'a load' ? { load: id } : { days, account };
    // The last one is of the load that is replaced; shards are asked for the others by clients of their own.
    const reached = steps
      .slice(0, what === 'a load' ? undefined : -1)
      .filter((step) => db.shards.length === 1 || step.source.startsWith('INSERT'));
    for (const step of reached) {
      const failed = replaceBy(failingAt(db.store, step, 'after'), target, path);
      const reason = await failed.then(String, (error: Error) => error.message);
      expect(reason, `${step}`).toContain('killed');
      const rollups = await select<{ spent: string }>(
        db.store,
        `SELECT toString(sum(spent)) AS spent FROM campaigns_date WHERE account_id = {account:String} UNION ALL
         SELECT toString(sum(spent)) FROM campaigns_device_creative_date WHERE account_id = {account:String}`,
        { account },
      );
      for (const { spent } of rollups) expect(['3', '3.5'], `${step}`).toContain(spent);
      if (step.source.endsWith('AND events$')) {
        expect(reason).toBe('killed. The same command completes the replacement');
        const { stderr } = await loads.run(['verify']);
        expect(stderr).toContain(`load ${path} ${describeTarget(target)} again\n`);
        expect(stderr).not.toContain('adtally rebuild');
      }
      // It does not come back when its folder is loaded again.
      await load(old, 3_000);
    }
    await replaceBy(db.store, target, path);
    expect(await loads.sound()).toEqual([35, '3.5']);
    expect((await loads.run(['status', '--next'])).stdout).not.toContain('interrupted');
  });
}
