import { insertData, type Store, select } from '../../clickhouse/client.ts';
import { together } from './batch-calls.ts';
import { fresh, isAlive, type LoadHeartbeat } from './load-heartbeat.ts';

/** One row of `loads`. */
export interface LoadRecord {
  readonly id: string;
  readonly kind: 'events' | 'replay' | 'rebuild' | 'replacement';
  readonly dedupe: boolean;
  /** Loads of the same lock run one after another; empty: beside all others. */
  readonly lock: string;
  readonly file: string;
  readonly user: string;
  readonly host: string;
  readonly pid: number;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** Its place in the order of loads: `yyyy-mm-dd hh:mm:ss.ffffff`, UTC; undefined: now. */
  readonly turn: string | undefined;
  readonly state: 'running' | 'failed' | 'loaded';
  readonly rows: number;
  readonly repeatedRows: number;
  readonly rejectedRows: number;
  readonly duplicateRows: number;
  readonly leftOutRows: number;
  readonly bytes: number;
  readonly chunks: number;
  readonly replayId: string;
  readonly error: string;
}

/** What the ledger has as the file of the load that takes another one back. */
export const unloadOf = (load: string): string => `unload of ${load}`;

/** Loads that are being taken back: nobody wants their files loaded again. */
export const leavingLoads = `SELECT substring(l.file, ${unloadOf('').length + 1}) FROM loads AS l FINAL
  WHERE state = 'running' AND kind = 'rebuild' AND startsWith(l.file, '${unloadOf('')}') AND ${fresh}`;

/** What the ledger has as the file of a load that replays rejected rows of another one. */
export const replayOf = (load: string): string => `replay of ${load}`;

/** The load whose rejected rows a load replays; undefined where its file in the ledger is another one. */
export const replayedIn = (file: string): string | undefined => /^replay of (\d{14}-\w+)$/.exec(file)?.[1];

/** What the ledger has as the file of the load that mends chunks of others: it is named after the first of them. */
export const mendOf = (firstLoad: string): string => `chunks in doubt, first those of load ${firstLoad}`;

/** How the file of a replacement of a load ends in the ledger. */
export const replacesLoad = (load: string): string => `--replaces ${load}`;

/** Whether loads of a kind exclude all others, because they exchange rollups. */
export const isExclusive = (kind: LoadRecord['kind']): boolean =>
  kind === 'rebuild' || kind === 'replacement';

/** Records what loads are doing now. */
export const recordLoad = together<LoadRecord, void>(async (store, records) => {
  await insertData(store, {
    into: `loads (load_id, kind, dedupe, lock, file, user, host, pid, started_at, turn, finished_at, state, rows,
                  repeated_rows, rejected_rows, duplicate_rows, left_out_rows, bytes, chunks, replay_id, error)`,
    select: `
      SELECT id, kind, dedupe, lock, file, user, host, pid, fromUnixTimestamp64Milli(startedAt, 'UTC'),
             if(turn = '', now64(6, 'UTC'), toDateTime64OrZero(turn, 6, 'UTC')),
             if(state = 'running', toDateTime64(0, 3), now64(3)), state,
             rows, repeatedRows, rejectedRows, duplicateRows, leftOutRows, bytes, chunks, replayId, error
      FROM input('id String, kind String, dedupe Bool, lock String, file String, user String, host String, pid UInt32, startedAt Int64,
        turn String, state String, rows UInt64, repeatedRows UInt64, rejectedRows UInt64, duplicateRows UInt64,
        leftOutRows UInt64, bytes UInt64, chunks UInt32, replayId String, error String')`,
    format: 'JSONEachRow',
    data: [records.map((record) => JSON.stringify(record)).join('\n')],
    settings: {},
  });
  return records.map(() => undefined);
});

/** Records that loads are taken back; one that was killed ended with its last heartbeat. */
export async function markUnloaded(store: Store, loads: readonly string[]): Promise<void> {
  await store.command({
    query: `INSERT INTO loads (* EXCEPT version)
            SELECT * EXCEPT version REPLACE ('unloaded' AS state, if(l.finished_at > 0, l.finished_at, l.version) AS finished_at)
            FROM loads AS l FINAL WHERE load_id IN {loads:Array(String)}`,
    query_params: { loads },
  });
}

/** A load recorded as running. */
export interface RunningLoad extends LoadHeartbeat, Pick<LoadRecord, 'id' | 'kind' | 'dedupe' | 'lock'> {
  /** The last that it has taken. */
  readonly turn: string;
}

/** The loads whose last heartbeat is recent, in the order of their turns. Loads that ask together get one list. */
export const loadsRunning = together<undefined, readonly RunningLoad[]>(async (store, asked) => {
  const query = `
    SELECT load_id AS id, toString(max(l.turn)) AS turn, any(l.kind) AS kind, any(l.dedupe) AS dedupe,
           argMax(l.lock, l.version) AS lock, any(l.host) AS host, any(l.pid) AS pid
    FROM loads AS l WHERE ${fresh}
    GROUP BY load_id HAVING argMax(l.state, l.version) = 'running'
    ORDER BY max(l.turn), load_id`;
  const loads = await select<RunningLoad>(store, query);
  return asked.map(() => loads);
});

/** After so long a file that nobody loads again has been given up. */
const givenUpAfterDays = 7;

/** The least id of the loads that began within the last seven days: ids begin with the time. */
export const leastLoadId = (now: Date): string =>
  new Date(now.getTime() - givenUpAfterDays * 86_400_000).toISOString().replace(/\D/g, '').slice(0, 14);

/** Files whose last load within seven days has failed, or was killed. */
export async function unsettledFiles(store: Store, now: Date): Promise<ReadonlySet<string>> {
  const running = (await loadsRunning(store, undefined)).filter(isAlive).map(({ id }) => id);
  const rows = await select<{ name: string }>(
    store,
    `SELECT file AS name FROM loads AS l FINAL
     WHERE load_id >= {since:String} AND kind = 'events' AND load_id NOT IN {running:Array(String)}
     GROUP BY name HAVING max(l.turn) > maxIf(l.turn, l.state IN ('loaded', 'unloaded'))`,
    { since: leastLoadId(now), running },
  );
  return new Set(rows.map(({ name }) => name));
}
