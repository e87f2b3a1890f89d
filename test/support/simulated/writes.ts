import type { State, Statement } from './state.ts';
import { type Part, type StagedRow, timeOf } from './tables.ts';

const list = (value: unknown): readonly string[] => value as readonly string[];

/** What a statement does at once; what it stores part by part is returned. */
type Write = (server: State, statement: Statement) => readonly Part[] | undefined;

export const writes: readonly (readonly [RegExp, Write])[] = [
  [
    /^INSERT INTO loads \(/,
    ({ tables, clock }, { data }) => {
      for (const line of `${data}`.split('\n')) {
        const { id, kind, dedupe, lock, host, pid, turn, state } = JSON.parse(line);
        const taken = turn === undefined ? clock : timeOf(turn);
        tables.loads.push({ id, kind, dedupe, lock, host, pid, state, turn: taken, version: clock });
      }
      return undefined;
    },
  ],
  [
    /^INSERT INTO load_chunks \(/,
    ({ tables, clock }, { query, data }) => {
      const [, timed] = /, (sent_at|loaded_at)\)/.exec(query) ?? [];
      const chunks = `${data}`.split('\n').map((line) => JSON.parse(line));
      const sent = tables
        .ledgerRows(chunks.map(({ head }) => head))
        .filter((row) => chunks.some(({ chunk }) => chunk === row.chunk));
      const time = Math.max(clock, ...sent.map(({ sentAt }) => sentAt + 1));
      for (const { chunk, head, loadId, content, batch, bytes, records, rows, rejectedRows } of chunks) {
        tables.record({
          ...{ chunk, head, loadId, content, batch, bytes, records, rows, rejectedRows },
          sentAt: timed === 'sent_at' ? time : -1,
          loadedAt: timed === 'loaded_at' ? time : -1,
        });
      }
      return undefined;
    },
  ],
  [
    /^INSERT INTO withdrawn_chunks/,
    ({ tables }, { params }) => {
      for (const chunk of list(params.chunks)) {
        const days = tables.withdrawn.get(chunk) ?? new Set();
        for (const { day } of tables.table('chunk_days').of([chunk])) days.add(day);
        for (const row of [...tables.staged.values()].flat())
          if (row.chunk === chunk && row.day !== undefined) days.add(row.day);
        tables.withdrawn.set(chunk, days);
      }
      return undefined;
    },
  ],
  [/^INSERT INTO (campaigns|ad_units)_changes /, () => undefined],
  // The past is not simulated.
  [/^INSERT INTO rewrites /, () => undefined],
  [
    /^INSERT INTO incoming_staging \(/,
    ({ tables }, statement) => {
      const [, batch = String(statement.params.batch)] = /, '([^']+)' AS batch/.exec(statement.query) ?? [];
      const held = tables.staged.get(batch) ?? [];
      held.push(...judged(statement));
      tables.staged.set(batch, held);
      return undefined;
    },
  ],
  [
    /^INSERT INTO incoming \(/,
    ({ tables, clock }, statement) => {
      const { query, params, settings } = statement;
      const token = String(settings.insert_deduplication_token);
      if (!query.includes('FROM incoming_staging')) return tables.partsOf(judged(statement), token);
      const held = tables.heldOnce(String(params.batch));
      const rows = held.filter(({ chunk }) => list(params.chunks).includes(chunk));
      const isAnew = query.includes("now64(6, 'UTC') AS loaded_at");
      const stored = rows.map((row) => (isAnew ? { ...row, loadedAt: clock } : row));
      return tables.partsOf(stored, token);
    },
  ],
  [
    /^ALTER TABLE incoming_staging DROP PARTITION/,
    ({ tables }, { query }) => {
      for (const [, batch = ''] of query.matchAll(/'([^']*)'/g)) tables.staged.delete(batch);
      return undefined;
    },
  ],
  [
    /^ALTER TABLE load_chunks UPDATE loaded_at/,
    ({ tables }, { params }) => {
      for (const row of tables.ledger.values())
        if (list(params.chunks).includes(row.chunk))
          Object.assign(row, { loadedAt: -1, records: 0, rows: 0, rejectedRows: 0 });
      return undefined;
    },
  ],
  [
    /^ALTER TABLE (\w+) DELETE WHERE chunk IN/,
    ({ tables }, { query, params }) => {
      const [, table = ''] = /TABLE (\w+)/.exec(query) ?? [];
      if (table !== 'rejected_rows') tables.table(table).delete(list(params.chunks));
      else
        for (const [key, { chunk }] of tables.rejected)
          if (list(params.chunks).includes(chunk)) tables.rejected.delete(key);
      return undefined;
    },
  ],
  [
    /^KILL QUERY WHERE splitByChar/,
    (server, { params }) => {
      const tokens = list(params.tokens);
      for (const work of server.atWork)
        if (tokens.includes(work.token.split(' ')[0] ?? '')) work.end('killed');
      return undefined;
    },
  ],
];

/** The records of an insert: those with a day are events. */
function judged({ query, params, data }: Statement): StagedRow[] {
  const arrays = [...query.matchAll(/\[([^\][]*)\]::Array\(([^[]+?)\)\[bitShiftRight/g)].map(
    ([, items = '']) => items.split(', ').map((item) => item.slice(1, -1)),
  );
  const [ids, times, loads] = arrays;
  const heads = /transform\(chunk, \[[^\]]*\], \[([^\]]*)\]/.exec(query)?.[1]?.split(', ') ?? [];
  return recordsIn(data, query.endsWith('FORMAT RowBinary'), Number(params.firstLine)).map(({ at, text }) => {
    const n = Number(at >> 40n);
    const [, day] = /"event_time":"(\d{4}-\d\d-\d\d)/.exec(text) ?? [];
    return {
      chunk: ids?.[n] ?? String(params.chunk),
      line: Number(at & ((1n << 40n) - 1n)),
      loadedAt: timeOf(times?.[n] ?? String(params.loadTime)),
      loadId: loads?.[n] ?? String(params.loadId),
      head: heads[n]?.slice(1, -1) ?? '',
      ...(day !== undefined && { day }),
    };
  });
}

function recordsIn(data: Buffer, isFramed: boolean, firstLine: number): { at: bigint; text: string }[] {
  if (!isFramed) {
    const lines = `${data}`.split('\n').filter(Boolean);
    return lines.map((text, n) => ({ at: BigInt(firstLine + n), text }));
  }
  const records: { at: bigint; text: string }[] = [];
  for (let place = 0; place < data.length; ) {
    const at = data.readBigUInt64LE(place);
    let [length, shift] = [0, 0];
    place += 8;
    for (let byte = 0x80; byte & 0x80; shift += 7) {
      byte = data[place++] as number;
      length |= (byte & 0x7f) << shift;
    }
    records.push({ at, text: `${data.subarray(place, place + length)}` });
    place += length;
  }
  return records;
}
