import { rename } from 'node:fs/promises';
import { ClickHouseError } from '@clickhouse/client';
import { describe, expect, test, vi } from 'vitest';
import { catalog } from '../../../catalog/catalog.ts';
import { type Store, select } from '../../../clickhouse/client.ts';
import { verifyRollups } from '../../../clickhouse/consistency/verify-rollups.ts';
import { dropStaged } from '../../../ingest/delivery/staging.ts';
import { defaultMapping, type ValidMapping } from '../../../ingest/event/mapping.ts';
import { mappedReading, plainReading } from '../../../ingest/event/reading.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { Load } from '../../../ingest/ledger/load.ts';
import { type FileLoadOptions, loadFiles } from '../../../ingest/load/load-files.ts';
import { RejectLimit } from '../../../ingest/rejects/reject-limit.ts';
import { event, ndjson } from '../../support/events.ts';
import { useLoader } from '../../support/loader.ts';
import { onEveryShard, useStore } from '../../support/store.ts';

// Small files that are loaded together are stored in one statement; here it fails, and the files come back one by one.
const db = useStore();
const { own, counted, file } = useLoader(db);

const load = async (store: Store, ...paths: string[]) => loadWith({ store }, paths);

const loadWith = async (
  options: Pick<FileLoadOptions, 'store'> & Partial<FileLoadOptions>,
  paths: readonly string[],
) => {
  const inputs = paths.map((path) => new LocalFile(path));
  const results = await loadFiles(inputs, { readingOf: plainReading, now: () => new Date(), ...options });
  return results.map(({ rows, repeatedRows, rejectedRows }) => ({ rows, repeatedRows, rejectedRows }));
};

const fresh = { rows: 20, repeatedRows: 0, rejectedRows: 1 };
const known = { rows: 0, repeatedRows: 20, rejectedRows: 0 };

/** Small files, each with a record that is no event. */
const filesOf = (count: number) =>
  Promise.all(
    Array.from({ length: count }, (_, n) => {
      const lines = Array.from({ length: 20 }, (_, line) =>
        event({ advertiser_id: own.account, campaign_id: `${n}`, spend: `${n}.${line}` }),
      );
      return file(
        `${n}.ndjson`,
        ndjson([...lines, event({ advertiser_id: own.account, device: 'd'.repeat(99) })]),
      );
    }),
  );

/** The store, but for the statements that store batches: they fail, for good, before or after they have done their work. */
function breaking(when: 'before' | 'after'): Store {
  const store: Store = Object.create(db.store);
  store.command = async (params) => {
    const storesBatch = /^INSERT INTO incoming .* FROM incoming_staging/s.test(params.query);
    if (storesBatch && when === 'before') throw new Error('broken by the test');
    const answer = await db.store.command(params);
    if (storesBatch) throw new Error('broken by the test');
    return answer;
  };
  return store;
}

/** The store, and the statements that it was sent. */
function counting(): { readonly store: Store; readonly statements: string[] } {
  const statements: string[] = [];
  const store: Store = Object.create(db.store);
  const noted =
    <Params extends { readonly query: string }, Answer>(send: (params: Params) => Answer) =>
    (params: Params): Answer => {
      statements.push(params.query);
      return send(params);
    };
  store.command = noted(db.store.command);
  store.exec = noted(db.store.exec.bind(db.store)) as Store['exec'];
  store.query = noted(db.store.query.bind(db.store)) as Store['query'];
  return { store, statements };
}

const whole = async (events: number) => {
  expect(await counted()).toBe(events);
  expect(await verifyRollups(db.store, catalog)).toEqual({ differences: [], more: false });
  const rejected = `SELECT toUInt32(count()) AS rows FROM rejected_rows FINAL WHERE fields['advertiser_id'] = {account:String}`;
  expect(await select(db.store, rejected, { account: own.account })).toEqual([{ rows: events / 20 }]);
};

/** Within a second of its definition nothing that a table remembers is relied on. */
const tableIsOld = () =>
  vi.waitFor(
    async () => {
      const query = `SELECT now64(3) > max(metadata_modification_time) + INTERVAL 1 SECOND AS old
        FROM system.tables WHERE database = currentDatabase() AND name = 'events'`;
      expect(await select(db.store, query)).toEqual([{ old: 1 }]);
    },
    { timeout: 10_000, interval: 100 },
  );

const batchesOf = `SELECT toUInt32(uniqExact(batch)) AS batches, toUInt32(uniqExact(chunk)) AS chunks
  FROM incoming_staging WHERE advertiser_id = {account:String}`;

test('small files are stored in a few statements, and nothing is held back afterwards', async () => {
  const paths = await filesOf(30);
  const { store, statements } = counting();
  expect(await load(store, ...paths)).toEqual(paths.map(() => fresh));
  expect(statements.filter((query) => /^INSERT INTO incoming /.test(query)).length).toBeLessThan(3);
  expect(await select(db.store, batchesOf, { account: own.account })).toEqual([{ batches: 0, chunks: 0 }]);
  expect(await load(db.store, ...paths)).toEqual(paths.map(() => known));
  await whole(600);
});

test('small files of a batch that was not stored are sent again in a few statements', async () => {
  const paths = await filesOf(30);
  await tableIsOld();
  await expect(load(breaking('before'), ...paths)).rejects.toThrow('broken by the test');
  const { store, statements } = counting();
  expect(await load(store, ...paths)).toEqual(paths.map(() => fresh));
  expect(statements.filter((query) => /^INSERT INTO incoming /.test(query)).length).toBeLessThan(5);
  await whole(600);
});

test('small files that are in doubt are mended in one turn, which compares rollups of whole months', async () => {
  const paths = await filesOf(30);
  await expect(load(breaking('after'), ...paths)).rejects.toThrow('broken by the test');
  await onEveryShard(db, 'TRUNCATE TABLE incoming_staging');
  const turns = `SELECT toUInt32(uniqExact(load_id)) AS turns FROM loads WHERE kind = 'rebuild'`;
  const before = await select<{ turns: number }>(db.store, turns);
  expect(await load(db.store, ...paths)).toEqual(paths.map(() => fresh));
  const after = await select<{ turns: number }>(db.store, turns);
  expect((after[0]?.turns ?? 0) - (before[0]?.turns ?? 0)).toBe(1);
  await whole(600);
});

test('of small files that are mended in one turn one that cannot be mended fails alone', async () => {
  const paths = await filesOf(5);
  await expect(load(breaking('before'), ...paths)).rejects.toThrow('broken by the test');
  await onEveryShard(db, 'TRUNCATE TABLE incoming_staging');
  const other = await Load.begin(db.store, { kind: 'events', file: 'other' }, new Date());
  const onWait = vi.fn();
  const loading = loadWith({ store: db.store, onWait }, paths);
  // As when it was held back for longer than a day.
  void vi
    .waitFor(() => expect(onWait).toHaveBeenCalledTimes(paths.length), { timeout: 30_000 })
    .then(async () => {
      const first = `SELECT any(batch) AS batch FROM incoming_staging WHERE campaign_id = '0'`;
      const [staged] = await select<{ batch: string }>(db.store, first);
      await dropStaged(db.store, [staged?.batch ?? '']);
      await other.finish();
    });
  await expect(loading).rejects.toThrow('what was held back of a chunk has expired');
  expect(onWait.mock.calls).toEqual(paths.map(() => [other.id]));
  expect(await counted()).toBe(80);
  const states = `SELECT file, toString(argMax(state, l.version)) AS state FROM loads AS l
    WHERE file IN {paths:Array(String)} AND started_at >= (SELECT max(started_at) FROM loads WHERE load_id = {id:String})
    GROUP BY load_id, file ORDER BY file`;
  expect(await select(db.store, states, { paths, id: other.id })).toEqual(
    paths.map((path, n) => ({ file: path, state: n === 0 ? 'failed' : 'loaded' })),
  );
  for (const { rows, repeatedRows } of await load(db.store, ...paths)) expect(rows + repeatedRows).toBe(20);
  await whole(100);
});

test.each([
  ['is refused', /refused by the test/],
  ['loses some of it', /does not have all of a chunk/],
] as const)('a mend whose last attempt %s leaves nothing of the chunk in reports', async (how, message) => {
  const [path = '', other = ''] = await filesOf(2);
  await expect(load(breaking('before'), path, other)).rejects.toThrow('broken by the test');
  await onEveryShard(db, 'TRUNCATE TABLE incoming_staging');
  let attempts = 0;
  const store: Store = Object.create(db.store);
  store.command = async (params) => {
    if (!/^INSERT INTO incoming .* FROM incoming_staging/s.test(params.query))
      return db.store.command(params);
    if (++attempts < 5) return db.store.command({ query: 'SELECT 1' });
    const answer = await db.store.command(params);
    if (how === 'is refused')
      throw new ClickHouseError({
        message: 'refused by the test',
        code: '469',
        type: 'VIOLATED_CONSTRAINT',
      });
    await onEveryShard(db, `DELETE FROM events WHERE advertiser_id = '${own.account}' AND spend = 0.5`);
    return answer;
  };
  await expect(load(store, path)).rejects.toThrow(message);
  expect(attempts).toBe(5);
  expect(await counted()).toBe(0);
  expect(await verifyRollups(db.store, catalog)).toEqual({ differences: [], more: false });
  expect(await load(db.store, path)).toEqual([fresh]);
});

/** Loads files and tells of those that failed. */
const failing = async (paths: readonly string[], options: Partial<FileLoadOptions> = {}) => {
  const failures: string[] = [];
  const onFailed: FileLoadOptions['onFailed'] = (_, { message }) => void failures.push(message);
  await loadWith({ store: db.store, onFailed, ...options }, paths);
  return failures;
};

describe('of small files that are stored together one that ClickHouse refuses fails alone', () => {
  const refusing = async (work: () => Promise<void>) => {
    await onEveryShard(db, `ALTER TABLE events ADD CONSTRAINT for_test CHECK campaign_id != '1'`);
    await tableIsOld()
      .then(work)
      .finally(() => onEveryShard(db, 'ALTER TABLE events DROP CONSTRAINT for_test'));
  };
  const refused = expect.stringMatching(/1\.ndjson: ClickHouse failed: .*for_test/);

  test('when it is stored', async () => {
    const paths = await filesOf(4);
    await refusing(async () => {
      expect(await failing(paths)).toEqual([refused]);
      await whole(60);
      expect(await failing(paths)).toEqual([refused]);
    });
    await load(db.store, ...paths);
    await whole(80);
  });

  test('when what another command has left is stored again, whichever files come', async () => {
    const paths = await filesOf(4);
    await refusing(async () => {
      await expect(load(breaking('before'), ...paths)).rejects.toThrow('broken by the test');
      const { store, statements } = counting();
      expect(await load(store, paths[0] ?? '')).toEqual([fresh]);
      // The batch, which is refused, and then the chunk by itself.
      expect(statements.filter((query) => query.startsWith('INSERT INTO incoming '))).toHaveLength(2);
      // What the batch has rejected of the other files is there until they come.
      expect(await counted()).toBe(20);
      expect(await verifyRollups(db.store, catalog)).toEqual({ differences: [], more: false });
      expect(await failing(paths)).toEqual([refused]);
      await whole(60);
    });
    await load(db.store, ...paths);
    await whole(80);
  });

  test('when it is judged', async () => {
    const paths = await filesOf(4);
    const campaign = '`{campaign_id}`';
    const sql = `if(throwIf(${campaign} = '1') = 0, ${campaign}, '')`;
    const mapping: ValidMapping = {
      ...defaultMapping,
      sources: new Map([['campaign_id', { kind: 'expression', text: sql, place: 'for a test' }]]),
      expressions: new Map([
        ['campaign_id', { sql, text: 'toNullable(result)', columns: ['campaign_id'], numbers: [] }],
      ]),
    };
    const { store, statements } = counting();
    const readingOf = (path: string) => mappedReading(path, mapping);
    expect(await failing(paths, { store, readingOf })).toEqual([
      expect.stringMatching(/1\.ndjson: ClickHouse failed: .*throwIf/),
    ]);
    await whole(60);
    // Nothing was stored of the batch: nothing has to be mended.
    expect(statements.filter((query) => query.includes('withdrawn_chunks'))).toEqual([]);
  });
});

test('what many small files cost beside their events is a statement for three of them', async () => {
  // Heartbeats come by the clock.
  const withoutHeartbeats = (statements: readonly string[]) =>
    statements.filter((query) => !query.startsWith('INSERT INTO loads ')).length;
  const { store, statements } = counting();
  await load(store, ...(await filesOf(100)));
  expect(withoutHeartbeats(statements)).toBeLessThan(31);
  const { store: another, statements: ofOne } = counting();
  await load(another, await file('one.ndjson', ndjson([event({ advertiser_id: own.account })])));
  expect(withoutHeartbeats(ofOne)).toBeLessThan(14);
  const { store: third, statements: ofCounted } = counting();
  const other = await file('counted.ndjson', ndjson([event({ advertiser_id: own.account })]));
  await loadWith({ store: third, rejectLimit: new RejectLimit({ rows: 0 }) }, [other]);
  expect(withoutHeartbeats(ofCounted)).toBeLessThan(18);
});

test.each([
  ['was not stored, and is held back', 'before', true],
  ['was not stored, and is not held back any more', 'before', false],
  ['was stored, and is held back', 'after', true],
  ['was stored, and is not held back any more', 'after', false],
] as const)('a batch that %s is completed file by file', async (_, when, heldBack) => {
  const [first = '', second = '', third = ''] = await filesOf(3);
  await tableIsOld();
  await expect(load(breaking(when), first, second, third)).rejects.toThrow('broken by the test');
  const [held] = await select<{ chunks: number }>(db.store, batchesOf, { account: own.account });
  expect(held?.chunks).toBeGreaterThan(0);
  if (!heldBack) await onEveryShard(db, 'TRUNCATE TABLE incoming_staging');

  // Its own file is enough.
  for (const path of [first, third]) await rename(path, `${path}.away`);
  const { store, statements } = counting();
  expect(await load(store, second)).toEqual([fresh]);
  const isWithdrawn = statements.some((query) => query.includes('INSERT INTO withdrawn_chunks'));
  expect(isWithdrawn).toBe(when === 'before' && !heldBack);
  for (const path of [first, third]) await rename(`${path}.away`, path);
  const again = [first, second, third];
  for (const { rows, repeatedRows } of await load(db.store, ...again)) expect(rows + repeatedRows).toBe(20);
  expect(await load(db.store, ...again)).toEqual(again.map(() => known));
  await whole(60);
});

test('rows that a batch has rejected, which was not stored, count for a limit', async () => {
  const paths = await filesOf(2);
  await expect(load(breaking('before'), ...paths)).rejects.toThrow('broken by the test');
  const limited = { store: db.store, rejectLimit: new RejectLimit({ rows: 0 }) };
  await expect(loadWith(limited, paths)).rejects.toThrow('more than 0 rows are faulty');
  expect(await counted()).toBe(0);
});
