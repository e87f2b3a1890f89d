import { deadAfterMs } from '../../../clickhouse/timings.ts';
import type { Asked, State } from './state.ts';
import { type LedgerRow, timeOf, timeText } from './tables.ts';

const list = (value: unknown): readonly string[] => value as readonly string[];

/** Answers of the questions that loads ask, each by its beginning. */
export const reads: readonly (readonly [RegExp, (server: State, asked: Asked) => readonly object[]])[] = [
  // Nothing is damaged there.
  [/^SELECT name FROM system\.detached_parts/, () => []],
  [/^SELECT DISTINCT table, partition, part FROM/, () => []],
  [
    /^SELECT timezone, cluster, shards, /,
    () => [{ timezone: 'UTC', cluster: '', shards: 1, firstShards: 1 }],
  ],
  [/^SELECT toString\(now64\(6, 'UTC'\)\) AS now/, (server) => [{ now: timeText(server.clock) }]],
  [
    /^SELECT load_id AS id, toString\(max\(l\.turn\)\)/,
    (server) => {
      const after = server.clock - deadAfterMs * 1000;
      const running = server.latestLoads().filter((load) => load.version > after && load.state === 'running');
      const turns = (id: string) =>
        server.tables.loads.filter((load) => load.id === id && load.version > after).map(({ turn }) => turn);
      return running
        .map(({ id, kind, dedupe, lock, ...place }) => ({
          ...{ id, turn: timeText(Math.max(...turns(id))), kind, dedupe, lock },
          ...server.whereOf(id, place),
        }))
        .sort((a, b) => (a.turn < b.turn || (a.turn === b.turn && a.id < b.id) ? -1 : 1));
    },
  ],
  [
    /^SELECT DISTINCT arrayJoin\(splitByChar\(' ', substring\(Settings\['log_comment'\]/,
    (server) => [...new Set(server.atWork.flatMap(({ loads }) => loads))].map((id) => ({ id })),
  ],
  [
    /^SELECT load_id AS id, max\(l\.lock\) AS lock/,
    (server, { params }) =>
      list(params.ids).flatMap((id) => {
        const locks = server.tables.loads.filter((load) => load.id === id).map(({ lock }) => lock);
        return locks.length > 0 ? [{ id, lock: locks.sort().at(-1) }] : [];
      }),
  ],
  [
    /^SELECT lower\(hex\(c\.head\)\) AS first, chunk, toFloat64\(max\(c\.bytes\)\) AS length/,
    ({ tables }, { params }) =>
      grouped(tables.ledgerRows(list(params.heads)), ({ head, chunk }) => `${head} ${chunk}`)
        .map((rows) => ({
          first: rows[0].head,
          chunk: rows[0].chunk,
          length: most(rows, 'bytes'),
          loaded: most(rows, 'loadedAt') >= 0 ? 1 : 0,
          counted: most(rows, 'rows'),
          content: rows
            .map(({ content }) => content)
            .sort()
            .at(-1),
        }))
        .sort(
          (a, b) =>
            b.loaded - a.loaded || b.length - a.length || (a.first + a.chunk < b.first + b.chunk ? -1 : 1),
        ),
  ],
  [
    /^WITH \(SELECT mapFromArrays/,
    ({ tables }, { params }) => {
      const days = tables.table('chunk_days').of(list(params.chunks));
      const arrived = (id: string) =>
        days.filter(({ chunk }) => chunk === id).map(({ loadedAt }) => loadedAt);
      return tables
        .ledgerRows(list(params.heads))
        .map(({ head: first, chunk, loadId, loadedAt, rows: counted, sentAt, batch }) => ({
          ...{
            first,
            chunk,
            loadId,
            counted,
            batch,
            sentAt: timeText(sentAt),
            loaded: loadedAt >= 0 ? 1 : 0,
          },
          arrivedAt: arrived(chunk).length > 0 ? timeText(Math.max(...arrived(chunk))) : null,
        }))
        .sort((a, b) => (a.sentAt < b.sentAt || (a.sentAt === b.sentAt && a.loadId < b.loadId) ? -1 : 1));
    },
  ],
  [
    /^SELECT 1 FROM withdrawn_chunks/,
    ({ tables }, { params }) => (tables.withdrawn.has(String(params.chunk)) ? [{ 1: 1 }] : []),
  ],
  // Nothing is unloaded or replaced.
  [/^SELECT 1 FROM loads AS l FINAL/, () => []],
  [
    /^SELECT toUInt8\( ?\(SELECT uniqExact\(chunk, toYYYYMM\(day\)\)/,
    ({ tables, latestLoads }, { params }) => {
      const sentAt = timeOf(String(params.sentAt));
      const rebuilt = latestLoads().some(({ kind, version }) => kind === 'rebuild' && version > sentAt);
      return [{ forgotten: tables.forgottenAt >= sentAt || rebuilt ? 1 : 0 }];
    },
  ],
  [
    /^SELECT toUInt8\(greatest\(/,
    ({ tables, clock }, { params }) => {
      const time = timeOf(String(params.time));
      return [{ later: tables.startedAt > time || time > clock + 60e6 ? 1 : 0 }];
    },
  ],
  [
    /^SELECT DISTINCT chunk AS id, head FROM incoming_staging/,
    ({ tables }, { params }) => {
      const rows = tables.staged.get(String(params.batch)) ?? [];
      return [...new Map(rows.map(({ chunk: id, head }) => [id, { id, head }])).values()];
    },
  ],
  [
    /^SELECT DISTINCT batch FROM incoming_staging/,
    ({ tables }, { params }) =>
      [...tables.staged]
        .filter(([, rows]) =>
          rows.some(({ chunk, head }) => head !== '' && list(params.chunks).includes(chunk)),
        )
        .map(([batch]) => ({ batch })),
  ],
  [
    /^SELECT toFloat64\(countIf\(notEmpty\(faults\)\)\) AS rejectedRows/,
    ({ tables }, { query, params }) => {
      const isOnce = query.includes(' LIMIT 1 BY line');
      return list(params.batches ?? [params.batch]).map((batch) => {
        const rows = isOnce ? tables.heldOnce(batch) : (tables.staged.get(batch) ?? []);
        const good = rows.filter(({ day }) => day !== undefined).length;
        const counts = { rejectedRows: rows.length - good, good, leftOut: 0, future: 0, early: 0 };
        return isOnce ? { ...counts, rows: good } : { ...counts, batch };
      });
    },
  ],
  [
    /^SELECT toFloat64\(f\.line\) AS line, faults FROM \(/,
    ({ tables }, { params }) =>
      tables
        .heldOnce(String(params.batch))
        .filter(({ day }) => day === undefined)
        .map(({ line }) => ({ line, faults: [] })),
  ],
  [
    /^SELECT chunk, toFloat64\(sum\(c\.good\)\) AS rows/,
    ({ tables }, { params }) =>
      list(params.chunks).flatMap((chunk) => {
        const rows = sum(tables.table('chunk_days').of([chunk]));
        const rejectedRows = tables.rejectedOf([chunk]).length;
        return rows + rejectedRows > 0
          ? [{ chunk, rows, rejectedRows, dismissedRows: 0, future: 0, early: 0 }]
          : [];
      }),
  ],
  [
    /^SELECT chunk, toFloat64\(sum\(c\.listed\)\) AS listed/,
    ({ tables }, { params }) => {
      const rows = (table: string, chunk: string) => tables.table(table).of([chunk]);
      const days = list(params.chunks).flatMap((chunk) => rows('chunk_days', chunk).map(({ day }) => day));
      return list(params.chunks).flatMap((chunk) => {
        const listed = sum(rows('chunk_days', chunk));
        const events = sum(rows('events', chunk).filter(({ day }) => days.includes(day)));
        return listed + events > 0 ? [{ chunk, listed, events, confirmed: 0 }] : [];
      });
    },
  ],
  [
    /^SELECT chunk, toFloat64\(line\) AS line, faults FROM rejected_rows/,
    ({ tables }, { params }) =>
      tables.rejectedOf(list(params.chunks)).map(({ chunk, line }) => ({ chunk, line, faults: [] })),
  ],
  [
    /^SELECT chunk, toFloat64\(count\(\)\) AS open FROM rejected_rows/,
    ({ tables }, { params }) =>
      grouped(tables.rejectedOf(list(params.chunks)), ({ chunk }) => chunk).map((rows) => ({
        chunk: rows[0].chunk,
        open: rows.length,
      })),
  ],
  [
    /^SELECT 1 FROM (\w+) WHERE chunk IN/,
    ({ tables }, { query, params }) => {
      const [, table = ''] = /FROM (\w+)/.exec(query) ?? [];
      if (table === 'load_chunks') {
        const rows = [...tables.ledger.values()].filter(({ chunk }) => list(params.chunks).includes(chunk));
        return rows.some(({ loadedAt }) => loadedAt >= 0) ? [{ 1: 1 }] : [];
      }
      const { length } =
        table === 'rejected_rows'
          ? tables.rejectedOf(list(params.chunks))
          : tables.table(table).of(list(params.chunks));
      return length > 0 ? [{ 1: 1 }] : [];
    },
  ],
  [
    /^SELECT toString\(min\(d\.day\)\) AS from/,
    ({ tables }, { params }) => {
      const days = tables
        .table('chunk_days')
        .of(list(params.chunks))
        .map(({ day }) => day);
      for (const chunk of list(params.chunks)) days.push(...(tables.withdrawn.get(chunk) ?? []));
      return grouped([...new Set(days)].sort(), (day) => day.slice(0, 7)).map((month) => ({
        from: month[0],
        to: month.at(-1),
      }));
    },
  ],
];

const most = (rows: readonly LedgerRow[], name: 'bytes' | 'rows' | 'loadedAt') =>
  Math.max(...rows.map((row) => row[name]));

const sum = (rows: readonly { readonly rows: number }[]) => rows.reduce((all, { rows }) => all + rows, 0);

function grouped<T>(rows: readonly T[], key: (row: T) => string): [T, ...T[]][] {
  const groups = new Map<string, [T, ...T[]]>();
  for (const row of rows) {
    const group = groups.get(key(row));
    if (group) group.push(row);
    else groups.set(key(row), [row]);
  }
  return [...groups.values()];
}
