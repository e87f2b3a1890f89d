import { loadOfChunk } from '../../clickhouse/came-between.ts';
import { chunksInDoubt } from '../../clickhouse/chunks-in-doubt.ts';
import { type Store, select, selectOne } from '../../clickhouse/client.ts';
import { foldedChunk, isPruned, prunedMonths } from '../../clickhouse/consistency/fold-events.ts';
import { type DayRange, daySlices, everyDay } from '../../clickhouse/consistency/verify-rollups.ts';
import { runningLoads } from '../ledger/load-heartbeat.ts';
import { dismissedRejects } from '../rejects/rejected-rows.ts';

/** A disagreement of what is stored of a chunk with the ledger. */
export interface LedgerDifference {
  /** The load that has to be repeated or taken back to mend it. */
  readonly load: string;
  readonly file: string;
  readonly chunk: string;
  /** `yyyy-mm-dd`; empty where the chunk as a whole differs. */
  readonly day: string;
  readonly what: string;
  readonly stored: number;
  readonly ledger: number;
  /** No load has recorded the chunk as loaded: its file has to be loaded again. */
  readonly inDoubt: 0 | 1;
}

/** Nobody would read more. */
const maxDifferences = 1000;
/** The balances of all chunks at once took 1.5 KB of memory each, and a statement has 4 GB of it. */
const chunksAtOnce = 200_000;

type Counts = Omit<LedgerDifference, 'load' | 'file' | 'inDoubt'>;

/**
 * Compares the events of each chunk and day with the ledger's list of days, and each chunk's list of days, rejected
 * rows and records with its balance, some days and some chunks at a time. What has been pruned is left out; so is what a running
 * load has not finished yet. Changes nothing.
 */
export async function verifyLedger(
  store: Store,
  range: DayRange = everyDay,
): Promise<{ readonly differences: readonly LedgerDifference[]; readonly more: boolean }> {
  const differences: LedgerDifference[] = [];
  const compare = async (query: string, params: Record<string, unknown>) => {
    const limit = maxDifferences - differences.length + 1;
    if (limit === 0) return;
    const found = await select<Counts>(store, query, { ...params, limit });
    differences.push(...(await withLoads(store, found)));
  };
  for (const names of await nameRuns(store))
    await compare(chunkQuery, { ...range, ...names, all: range === everyDay });
  for (const slice of await daySlices(store, ['events', 'chunk_days'], range))
    await compare(dayQuery, { ...slice });
  const more = differences.length > maxDifferences;
  return { differences: differences.slice(0, maxDifferences), more };
}

/** Names of chunks, from one to before another; an empty one is no bound. */
interface NameRun {
  readonly begin: string;
  readonly end: string;
}

/** Cuts the names of chunks into runs of about `chunksAtOnce`: names are hashes, and spread evenly. */
async function nameRuns(store: Store): Promise<NameRun[]> {
  const { rows } = await selectOne<{ rows: number }>(
    store,
    'SELECT toFloat64(count()) AS rows FROM load_chunks',
  );
  const runs = Math.max(1, Math.ceil(rows / chunksAtOnce));
  const bounds = Array.from({ length: runs - 1 }, (_, n) =>
    Math.floor(((n + 1) / runs) * 2 ** 32)
      .toString(16)
      .padStart(8, '0'),
  );
  return ['', ...bounds].map((begin, n) => ({ begin, end: bounds[n] ?? '' }));
}

/** Condition on chunks of a run. */
const ofRun = "chunk >= {begin:String} AND ({end:String} = '' OR chunk < {end:String})";

/** The chunks with the load that loaded them, or, if none has, the last that tried. */
async function withLoads(store: Store, found: readonly Counts[]): Promise<LedgerDifference[]> {
  if (found.length === 0) return [];
  const claimed = await select<Pick<LedgerDifference, 'chunk' | 'load' | 'file' | 'inDoubt'>>(
    store,
    `SELECT c.chunk AS chunk, c.load AS load, l.file AS file, c.inDoubt AS inDoubt
     FROM (SELECT chunk, ${loadOfChunk} AS load, toUInt64(max(c.loaded_at)) = 0 AS inDoubt
           FROM load_chunks AS c WHERE chunk IN {chunks:Array(String)} GROUP BY chunk) AS c
     LEFT JOIN (SELECT load_id, file FROM loads FINAL
                WHERE load_id IN (SELECT load_id FROM load_chunks WHERE chunk IN {chunks:Array(String)})) AS l ON l.load_id = c.load`,
    { chunks: [...new Set(found.map(({ chunk }) => chunk))] },
  );
  const loads = new Map(claimed.map((each) => [each.chunk, each]));
  const unnamed = { load: '', file: '', inDoubt: 0 } as const;
  return found
    .map((counts) => ({ ...unnamed, ...loads.get(counts.chunk), ...counts }))
    .sort((a, b) => (a.load < b.load ? -1 : Number(a.load > b.load)));
}

/** Events that arrived and that no row of the ledger tells of any more, because of a power failure or a damaged part. */
export interface UnnamedChunks {
  readonly chunks: number;
  readonly events: number;
  /** `yyyy-mm-dd` */
  readonly first: string;
  readonly last: string;
}

/**
 * What the list of days has of chunks that no row of the ledger names. Their files count as never loaded. Reports have their
 * events, so that nothing disagrees. Rows that came since the question began do not count: on a cluster shards read them after
 * the ledger was read.
 */
export async function unnamedChunks(store: Store, range: DayRange): Promise<UnnamedChunks> {
  let all: UnnamedChunks = { chunks: 0, events: 0, first: '', last: '' };
  for (const names of await nameRuns(store)) {
    const found = await selectOne<UnnamedChunks>(
      store,
      `WITH ${prunedMonths}
       SELECT toFloat64(uniqExact(chunk)) AS chunks, toFloat64(sum(d.events)) AS events, toString(min(day)) AS first,
         toString(max(day)) AS last
       FROM chunk_days AS d WHERE ${ofRun} AND ${onDays} AND chunk != '' AND d.loaded_at <= now64(6) AND NOT ${isPruned}
         AND chunk NOT IN (SELECT chunk FROM load_chunks WHERE ${ofRun})`,
      { ...range, ...names },
    );
    if (found.chunks === 0) continue;
    all = {
      chunks: all.chunks + found.chunks,
      events: all.events + found.events,
      first: all.first === '' || found.first < all.first ? found.first : all.first,
      last: found.last > all.last ? found.last : all.last,
    };
  }
  return all;
}

const onDays = 'day BETWEEN {from:Date} AND {to:Date}';
/** Events that were inserted by hand have no chunk. */
const settled = `chunk != '' AND chunk NOT IN (SELECT chunk FROM (${chunksInDoubt(`load_id IN (${runningLoads})`)}))`;

const dayQuery = `
  WITH ${prunedMonths}
  SELECT s.chunk AS chunk, toString(s.day) AS day, 'events' AS what, toFloat64(s.stored) AS stored, toFloat64(s.listed) AS ledger
  FROM (
    SELECT chunk, day, sum(both.stored) AS stored, sum(both.listed) AS listed
    FROM (
      SELECT toString(chunk) AS chunk, day, count() AS stored, toUInt64(0) AS listed FROM events
      WHERE ${onDays} AND ${settled} AND chunk != '${foldedChunk}' AND NOT ${isPruned} GROUP BY chunk, day
      UNION ALL
      SELECT chunk, day, toUInt64(0), sum(a.events) FROM chunk_days AS a
      WHERE ${onDays} AND ${settled} AND NOT ${isPruned} GROUP BY chunk, day
    ) AS both GROUP BY chunk, day HAVING stored != listed
  ) AS s ORDER BY s.chunk, s.day LIMIT {limit:UInt32}`;

const balances = `
  SELECT chunk, toUInt64(max(c.loaded_at)) = 0 AS inDoubt, max(c.records) AS records, max(c.rows) AS rows,
    max(c.rejected_rows) AS rejected, max(c.duplicate_rows) AS duplicates, max(c.left_out_rows) AS leftOut
  FROM load_chunks AS c WHERE ${ofRun} AND ${settled} GROUP BY chunk`;

const chunkQuery = `
  SELECT c.chunk AS chunk, '' AS day, difference.1 AS what, difference.2 AS stored, difference.3 AS ledger
  FROM (${balances}) AS c
  LEFT JOIN (SELECT chunk, sum(a.events) AS events FROM chunk_days AS a WHERE ${ofRun} GROUP BY chunk) AS days ON days.chunk = c.chunk
  LEFT JOIN (SELECT chunk, uniqExact(line) AS rejected, uniqExactIf(line, ${dismissedRejects}) AS dismissed
             FROM rejected_rows WHERE ${ofRun} GROUP BY chunk) AS r ON r.chunk = c.chunk
  ARRAY JOIN arrayFilter(pair -> pair.2 != pair.3, [
    ('events in the list of days', toFloat64(days.events), toFloat64(c.rows)),
    ('rejected rows', toFloat64(if(c.inDoubt, 0, least(greatest(c.rejected, r.rejected - r.dismissed), r.rejected))), toFloat64(c.rejected)),
    ('records', toFloat64(c.rows + c.duplicates + c.rejected + c.leftOut), toFloat64(if(c.records = 0 OR c.inDoubt, c.rows + c.duplicates + c.rejected + c.leftOut, c.records)))
  ]) AS difference
  WHERE {all:Bool} OR c.chunk IN (SELECT chunk FROM chunk_days WHERE ${ofRun} AND ${onDays})
  ORDER BY c.chunk, what LIMIT {limit:UInt32}`;
