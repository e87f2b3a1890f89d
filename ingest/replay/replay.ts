import { randomUUID } from 'node:crypto';
import type { ClickHouseSettings } from '@clickhouse/client';
import { eventFields, fieldSpecs, isEventField } from '../../catalog/events.ts';
import { insertData, type Store, select } from '../../clickhouse/client.ts';
import { hasNoResult } from '../event/expressions.ts';
import { noValue, plainReading } from '../event/reading.ts';
import { tooManyPlaces } from '../event/values.ts';
import { heldInput } from '../input/held-input.ts';
import type { Input } from '../input/input.ts';
import { Load, type WaitOptions } from '../ledger/load.ts';
import { replayOf } from '../ledger/load-records.ts';
import { loadEvents } from '../load/load-events.ts';
import {
  correctedOnce,
  type Fault,
  ofLoads,
  openRejects,
  type RejectedRow,
} from '../rejects/rejected-rows.ts';
import { faultsOfRows, linesOf } from './judge-corrections.ts';
import { type Correction, readCorrections } from './read-corrections.ts';

export interface ReplayResult {
  /** Rows loaded and marked as replayed now. */
  readonly replayed: number;
  /** Rows marked as replayed and not loaded, because their event_id was present. */
  readonly duplicates: number;
  /** The load that the replay was. */
  readonly loadId: string;
  /** Rows of the file that were replayed or dismissed before, or belong to another load. */
  readonly skipped: number;
  /** Rows that are still faulty, with the line they had in the file of the load. */
  readonly faulty: readonly RejectedRow[];
}

/**
 * Loads the corrected rows of an export of a load's rejected rows (CSV or NDJSON, as `rejects` writes them) and
 * marks them as replayed; rows that are still faulty stay rejected. Interrupted at any point and repeated, also
 * with other corrections, it counts each row once: what is being replayed is kept in the store first, and an
 * unfinished replay is finished before a new one begins. Replays run one after the other: two loads may have the same
 * rejected rows.
 * @throws {InputError} when the file is no such export
 */
export async function replay(
  store: Store,
  load: string,
  input: Input,
  now: () => Date,
  options: ReplayOptions = {},
): Promise<ReplayResult> {
  const corrections = await readCorrections(input);
  for (;;) {
    const unfinished = await unfinishedReplay(store, load);
    const dedupe = unfinished === undefined ? (options.dedupe ?? false) : isDeduped(unfinished);
    const description = { kind: 'replay', file: replayOf(load), lock: 'replay', dedupe } as const;
    const turn = await Load.begin(store, description, now(), options);
    try {
      const how = { turn, dedupe, roundMoney: options.roundMoney ?? false, unfinished };
      const result = await replayOnce(store, load, corrections, how, now);
      if (result) return result;
    } catch (error) {
      await turn.fail(error);
      throw error;
    }
  }
}

export interface ReplayOptions extends WaitOptions {
  /** Rows whose event_id is present on their days are not loaded. */
  readonly dedupe?: boolean;
  /** Amounts with more than six decimal places are rounded, half away from zero. */
  readonly roundMoney?: boolean;
}

/** The name of a replay says whether it goes by event ids: however often it is interrupted, it does so to its end. */
const replayName = (dedupe: boolean): string => `${dedupe ? 'dedupe-' : ''}${randomUUID()}`;
const isDeduped = (replayId: string): boolean => replayId.startsWith('dedupe-');

async function unfinishedReplay(store: Store, load: string): Promise<string | undefined> {
  const [unfinished] = await select<{ id: string }>(
    store,
    `SELECT replay_id AS id FROM rejected_rows AS r FINAL WHERE ${ofLoads} AND replay_id != '' AND replayed_at = 0 LIMIT 1`,
    { loads: [load] },
  );
  return unfinished?.id;
}

interface Turn {
  readonly turn: Load;
  readonly dedupe: boolean;
  readonly roundMoney: boolean;
  /** The replay that was unfinished before the turn began. */
  readonly unfinished: string | undefined;
}

/** What an export has in place of bytes that are not UTF-8: somebody has to say what they mean. */
const notUtf8 = '\uFFFD';

interface Rejected extends RejectedRow, Pick<Correction, 'chunk'> {
  /** Its fields as an export has them. */
  readonly exported: Readonly<Record<string, string>>;
  /** Those of its fields that are not UTF-8. */
  readonly broken: readonly string[];
}

/**
 * Why a row was rejected that nobody has corrected. Its fields do not show every reason: cells may have moved into other
 * columns, and a value that could not be computed is not there.
 */
function hiddenFaults(
  { fields }: Correction,
  { exported, faults }: Rejected,
  { dedupe, roundMoney }: ReplayOptions,
): readonly Fault[] {
  const changed = eventFields.some((name) => (fields[name] ?? '') !== (exported[name] ?? ''));
  if (changed) return missing(fields, faults);
  const left = faults.filter(
    ({ field, reason }) =>
      reason !== correctedOnce &&
      !(roundMoney && reason.startsWith(tooManyPlaces)) &&
      // Where a load skips duplicates an event needs an id.
      (dedupe || field !== 'event_id' || !reason.startsWith('is required')),
  );
  return left.length === 0 ? left : [...left, { field: '', reason: 'nothing of it was corrected' }];
}

/** What could not be computed is exported empty. Unless it is text, it would count as something then: somebody has to give it. */
function missing(fields: Correction['fields'], faults: readonly Fault[]): Fault[] {
  return faults.flatMap(({ field, reason }) => {
    if (!isEventField(field) || fieldSpecs[field].kind === 'text' || fields[field]) return [];
    if (!hasNoResult(reason)) return [];
    const none = noValue(field);
    return [{ field, reason: `${reason}; give it${none && `, ${none} for none`}` }];
  });
}

const placeOf = ({ chunk, line }: Pick<Correction, 'chunk' | 'line'>): string => `${chunk}:${line}`;

/** Finishes an unfinished replay, if there is one, and returns nothing; else replays what is open. */
async function replayOnce(
  store: Store,
  load: string,
  corrections: readonly Correction[],
  { turn, dedupe, roundMoney, unfinished: seen }: Turn,
  now: () => Date,
): Promise<ReplayResult | undefined> {
  const unfinished = await unfinishedReplay(store, load);
  // Another replay has begun or ended it meanwhile: a turn of the right kind has to be taken.
  if (unfinished !== seen) {
    await turn.finish();
    return undefined;
  }
  if (unfinished !== undefined) {
    await turn.replays(unfinished);
    await finishReplay(store, unfinished, turn, now);
    return undefined;
  }
  const open = new Map(
    (
      await select<Rejected>(
        store,
        `SELECT chunk, toFloat64(line) AS line, faults, mapApply((name, value) -> (name, toValidUTF8(value)), r.fields) AS exported,
           arrayFilter(name -> NOT isValidUTF8(r.fields[name]), mapKeys(r.fields)) AS broken
         FROM rejected_rows AS r FINAL WHERE ${ofLoads} AND ${openRejects}`,
        { loads: [load] },
      )
    ).map((row) => [placeOf(row), row]),
  );
  const candidates = corrections.filter((row) => open.has(placeOf(row)));
  const rows = candidates.map(({ fields }) => fields);
  const faults = await faultsOfRows(store, rows, { requireEventId: dedupe, roundMoney });
  for (const [n, row] of candidates.entries()) {
    const rejected = open.get(placeOf(row));
    if (!rejected) continue;
    const left = rejected.broken.filter((field) => row.fields[field]?.includes(notUtf8));
    const more = left.map((field) => ({ field, reason: 'has U+FFFD in place of what was not UTF-8' }));
    const shown = [...(faults.get(n) ?? []), ...more];
    const found = shown.length > 0 ? shown : hiddenFaults(row, rejected, { dedupe, roundMoney });
    if (found.length > 0) faults.set(n, found);
  }
  const good = candidates.filter((_, n) => !faults.has(n));
  let duplicates = 0;
  if (good.length > 0) {
    const id = replayName(dedupe);
    // First of all, so that whoever finds its rows finds its load.
    await turn.replays(id);
    await recordCorrections(store, load, id, good);
    duplicates = await finishReplay(store, id, turn, now);
  } else await turn.finish();
  return {
    replayed: good.length - duplicates,
    duplicates,
    loadId: turn.id,
    skipped: corrections.length - candidates.length,
    faulty: candidates.flatMap(({ line }, n) => {
      const found = faults.get(n);
      return found ? [{ line, faults: found }] : [];
    }),
  };
}

/**
 * Loads what the store has of a replay, under the name its content gives it, which ends the turn; then marks it. All of
 * it, also where an earlier attempt has marked a part: a part would have another name. Returns how many rows were left
 * out as duplicates now.
 */
async function finishReplay(store: Store, id: string, turn: Load, now: () => Date): Promise<number> {
  const rows = await select<{ fields: Record<string, string> }>(
    store,
    `SELECT fields FROM rejected_rows FINAL
     WHERE replay_id = {id:String} ORDER BY chunk, line`,
    { id },
  );
  const lines = Buffer.from(linesOf(rows.map(({ fields }) => fields)));
  const input = heldInput('the corrected rows', ['ndjson'], lines);
  // Equal rows of another replay are other events.
  const reading = { ...plainReading(input.name), salt: `replay ${id}` };
  // They were judged before they were recorded: an amount that is rounded now was to be.
  const options = { dedupe: isDeduped(id), roundMoney: true };
  const loaded = await loadEvents({ store, input, reading, ...options, load: turn, now });
  await store.command({
    query: `INSERT INTO rejected_rows (chunk, line, load_id, file, faults, raw, fields, replay_id, replayed_at)
            SELECT chunk, line, load_id, file, faults, raw, fields, replay_id, now64(3) FROM rejected_rows FINAL
            WHERE replay_id = {id:String}`,
    query_params: { id },
    clickhouse_settings: oneBlock,
  });
  return loaded.duplicateRows;
}

/** What is inserted is there as a whole or not at all. */
const oneBlock: ClickHouseSettings = {
  max_insert_threads: '1',
  min_insert_block_size_rows: '1000000000',
  min_insert_block_size_bytes: '0',
  wait_end_of_query: 1,
};

/** Keeps the corrected fields with the rejected rows, all of them in one block or none. */
async function recordCorrections(
  store: Store,
  load: string,
  id: string,
  corrections: readonly Correction[],
): Promise<void> {
  const rows = corrections.map(({ chunk, line, fields }) =>
    JSON.stringify({
      chunk,
      line,
      fields: Object.fromEntries(Object.entries(fields).filter(([, value]) => value)),
    }),
  );
  await insertData(store, {
    into: 'rejected_rows (chunk, line, load_id, file, faults, raw, fields, replay_id)',
    select: `SELECT r.chunk, r.line, r.load_id, r.file, r.faults, r.raw, c.fields, {id:String}
            FROM input('chunk String, line UInt64, fields Map(String, String)') AS c
            INNER JOIN (SELECT * FROM rejected_rows AS r FINAL WHERE ${ofLoads}) AS r
              ON r.chunk = c.chunk AND r.line = c.line`,
    format: 'JSONEachRow',
    data: [rows.join('\n')],
    params: { loads: [load], id },
    settings: oneBlock,
  });
}
