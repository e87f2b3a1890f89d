import { pipeline } from 'node:stream/promises';
import { eventFields } from '../../catalog/events.ts';
import { chunksInDoubt } from '../../clickhouse/chunks-in-doubt.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import { eventIn, fileOrder, lineIn } from '../event/record-place.ts';
import { LoadRefused } from '../ledger/load-error.ts';
import { stateColumn } from '../ledger/load-heartbeat.ts';
import type { LoadRecord } from '../ledger/load-records.ts';
import { ofLoads, openRejects } from '../rejects/rejected-rows.ts';

/** The format of a list; ClickHouse writes it, whatever its length. */
export type ListFormat = 'table' | 'json' | 'csv' | 'ndjson';

const clickhouseFormats: Readonly<Record<ListFormat, string>> = {
  table: 'PrettyCompactMonoBlock',
  json: 'JSONEachRow',
  csv: 'CSVWithNames',
  ndjson: 'JSONEachRow',
};

/** The newest loads: ids begin with the time. */
const listed =
  'load_id >= (SELECT min(n.load_id) FROM (SELECT load_id FROM loads ORDER BY load_id DESC LIMIT 1 BY load_id LIMIT {max:UInt32}) AS n)';

const days = `
  SELECT c.load_id AS load_id, toString(min(d.day)) AS first_day, toString(max(d.day)) AS last_day, uniqExact(d.day) AS days
  FROM (SELECT DISTINCT load_id, chunk FROM load_chunks WHERE ${listed}) AS c
  INNER JOIN (SELECT chunk, day FROM chunk_days WHERE chunk IN (SELECT chunk FROM load_chunks WHERE ${listed})) AS d
    ON d.chunk = c.chunk GROUP BY load_id`;

/** Writes the load history, newest first; it includes rebuilds of rollups. */
export function writeLoads(
  store: Store,
  out: NodeJS.WritableStream,
  format: ListFormat,
  max: number,
): Promise<void> {
  return writeList(
    store,
    out,
    `SELECT l.load_id AS load, toString(l.kind) AS kind, ${stateColumn} AS state, file, rows, repeated_rows, rejected_rows,
            duplicate_rows, left_out_rows, bytes, chunks, toString(started_at) AS started,
            round(if(l.finished_at > 0, l.finished_at, l.version) - l.started_at, 3) AS seconds,
            concat(user, '@', splitByChar('/', host)[1], ':', toString(pid)) AS by, first_day, last_day, days, error
     FROM (SELECT * FROM loads FINAL WHERE ${listed}) AS l LEFT JOIN (${days}) AS d ON d.load_id = l.load_id
     ORDER BY l.load_id DESC LIMIT {max:UInt32}`,
    { max },
    format,
  );
}

const ofLoad = 'chunk IN own AND day IN touched';

/** Writes all fields of one load. */
export function writeLoad(
  store: Store,
  out: NodeJS.WritableStream,
  load: string,
  json: boolean,
): Promise<void> {
  return writeList(
    store,
    out,
    `WITH
       (SELECT groupArray(chunk) FROM load_chunks WHERE load_id = {load:String}) AS own,
       (SELECT groupUniqArray(day) FROM chunk_days WHERE chunk IN own) AS touched
     SELECT l.load_id AS load, toString(l.kind) AS kind, ${stateColumn} AS state, file, dedupe, rows, repeated_rows,
            rejected_rows, duplicate_rows, left_out_rows, bytes, chunks, toString(started_at) AS started,
            if(l.finished_at > 0, toString(l.finished_at), '') AS finished,
            concat(user, '@', splitByChar('/', host)[1], ':', toString(pid)) AS by, error,
            arrayMap(day -> toString(day), arraySort(touched)) AS event_days,
            (SELECT count() FROM rejected_rows AS r FINAL WHERE ${ofLoads} AND ${openRejects}) AS rejected_open,
            if(l.state = 'unloaded', 0, (SELECT count() FROM (${chunksInDoubt('load_id = {load:String}')}))) AS chunks_in_doubt,
            (SELECT count() FROM events WHERE ${ofLoad} AND (event_id, day) IN
               (SELECT event_id, day FROM events
                WHERE day IN touched AND event_id != '' AND event_id IN (SELECT event_id FROM events WHERE ${ofLoad})
                GROUP BY event_id, day HAVING count() > 1)) AS repeated_ids
     FROM loads AS l FINAL WHERE l.load_id = {load:String}`,
    { load, loads: [load] },
    json ? 'json' : 'table',
    json ? 'JSONEachRow' : 'Vertical',
  );
}

/** Writes the rejected rows of some loads, or of all, without those already replayed. CSV and NDJSON can be replayed. */
export function writeRejects(
  store: Store,
  out: NodeJS.WritableStream,
  loads: readonly string[],
  format: ListFormat,
): Promise<void> {
  const faults =
    "arrayStringConcat(arrayMap(f -> if(f.field = '', f.reason, concat(f.field, ' ', f.reason)), r.faults), '; ')";
  const place = `${lineIn('r.line')} AS line, toUInt16(${eventIn('r.line')}) AS event_number`;
  const event = 'mapApply((name, value) -> (name, toValidUTF8(value)), r.fields) AS event';
  const columns = {
    table: `load_id AS load, file, concat(toString(${lineIn('r.line')}), if(${eventIn('r.line')} > 0, concat(', event ', toString(${eventIn('r.line')})), '')) AS line, ${faults} AS faults`,
    csv: `load_id AS load, chunk, ${place}, ${faults} AS faults, ${eventFields.map((name) => `toValidUTF8(r.fields['${name}']) AS ${name}`).join(', ')}, toValidUTF8(raw) AS raw`,
    ndjson: `load_id AS load, chunk, file, ${place}, r.faults AS faults, toValidUTF8(raw) AS raw, ${event}`,
    json: `load_id AS load, chunk, file, ${place}, r.faults AS faults, toValidUTF8(raw) AS raw, ${event}`,
  }[format];
  return writeList(
    store,
    out,
    `SELECT ${columns} FROM rejected_rows AS r FINAL
     WHERE ${openRejects} AND (empty({loads:Array(String)}) OR ${ofLoads})
     ORDER BY load_id, file, ${fileOrder('r.line')}`,
    { loads },
    format,
  );
}

/** What the ledger tells of a load; `dead`: its heartbeats have stopped. */
export interface LoadState extends Pick<LoadRecord, 'id' | 'kind'> {
  readonly state: LoadRecord['state'] | 'dead' | 'unloaded';
  readonly replayId: string;
}

/** Looks a load up. @throws when no load has that id */
export async function requireLoad(store: Store, id: string): Promise<LoadState> {
  const [found] = await select<LoadState>(
    store,
    `SELECT load_id AS id, toString(kind) AS kind, ${stateColumn} AS state, replay_id AS replayId
     FROM loads AS l FINAL WHERE load_id = {id:String}`,
    { id },
  );
  if (!found) throw new LoadRefused(`there is no load ${id}; adtally loads lists them`);
  return found;
}

/** Writes what a statement gives as a list. */
export async function writeList(
  store: Store,
  out: NodeJS.WritableStream,
  query: string,
  params: Record<string, unknown>,
  list: ListFormat,
  format = clickhouseFormats[list],
): Promise<void> {
  const { stream } = await store.exec({
    query: `${query}\nFORMAT ${format}`,
    query_params: params,
    clickhouse_settings: {
      output_format_json_array_of_rows: list === 'json' ? 1 : 0,
      output_format_json_quote_64bit_integers: 0,
      output_format_pretty_max_rows: '1000000',
      output_format_pretty_max_value_width: '200',
      output_format_pretty_color: 0,
      output_format_pretty_row_numbers: 0,
    },
  });
  await pipeline(stream, out, { end: false });
}
