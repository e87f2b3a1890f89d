import { buffer } from 'node:stream/consumers';
import { familyOf } from '../../catalog/breakdowns.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { quoted } from '../../clickhouse/quoted.ts';
import type { Reads } from '../../clickhouse/reader.ts';
import { type JudgedPiece, judgedPieces } from '../../ingest/chunks/judged-pieces.ts';
import type { JudgeOptions } from '../../ingest/event/judge.ts';
import type { FileReading } from '../../ingest/event/reading.ts';
import { type FormatName, formatOf } from '../../ingest/formats/formats.ts';
import type { Input } from '../../ingest/input/input.ts';
import { InputError } from '../../ingest/input/input-error.ts';
import { unreadable } from '../../ingest/ledger/load-error.ts';
import { describeRejected, type RejectedRow } from '../../ingest/rejects/rejected-rows.ts';
import { type Days, everyDay } from '../report/plan.ts';
import { figuresFrom, keyOf, measuresOf, type Side } from './model/sides.ts';

/** A report of the other side, as it was read. */
export interface TheirReport {
  readonly rows: Side;
  /** Records that are none, which are compared with nothing. */
  readonly rejected: number;
  /** The first of them, in words. */
  readonly rejects: readonly string[];
  /** First and last day; empty where there is no row. */
  readonly first: string;
  readonly last: string;
  readonly figures: readonly TheirFigure[];
}

/** What their values of a measure are like. */
export interface TheirFigure {
  /** Values that are not 0. */
  readonly values: number;
  /** Zeros at the end of each of them, in the smallest unit: 4 where money has two decimal places. */
  readonly zeros: number;
}

interface TheirReading {
  readonly input: Input;
  readonly format?: FormatName;
  readonly reading: FileReading;
  readonly judge: JudgeOptions;
  /** Rows of other days are counted, and not held. */
  readonly days?: Days;
  /** What all rows may have in memory; absent: anything. */
  readonly maxBytes?: number;
}

/** Their rows need more memory than `maxBytes`. */
export class TooManyRows extends Error {}

interface Counts {
  readonly rejected: number;
  /** Neither rejected nor left out by a condition. */
  readonly rows: number;
  readonly rejects: readonly RejectedRow[];
  readonly first: string;
  readonly last: string;
  readonly figures: readonly (readonly [values: number, zeros: number])[];
}

/** More than any amount has. */
const noZeros = 99;
/** A piece of the file that one statement reads. */
const pieceBytes = 16 << 20;

/**
 * Reads a file as the loader does, and stores nothing: each piece goes with a statement that judges its records and
 * answers with their sums by day and key.
 * @throws {InputError} for a file that cannot be read or whose columns do not fit, {TooManyRows}
 */
export async function readTheirs(
  reader: Reads,
  catalog: Catalog,
  family: string,
  { input, format, reading, judge, days = everyDay, maxBytes = Number.POSITIVE_INFINITY }: TheirReading,
): Promise<TheirReport> {
  const opened = await formatOf(input, format).open(input, {
    reading,
    chunkBytes: pieceBytes,
    onBytes: () => {},
  });
  const rows: Uint8Array[] = [];
  const all: Counts[] = [];
  const rejects: string[] = [];
  let bytes = 0;
  try {
    for await (const chunk of opened.chunks(() => Promise.resolve([]))) {
      for await (const piece of judgedPieces(chunk, judge)) {
        const statements = statementsOf(piece, catalog, family, judge.reportTimezone, days);
        const [counts] = await reader.rows<Counts>(statements.counts);
        if (!counts) throw new Error('ClickHouse did not count their records');
        all.push(counts);
        rejects.push(...counts.rejects.map((row) => describeRejected(input.name, chunk.unit, row)));
        const found = await buffer(await reader.stream(statements.rows));
        bytes += found.length;
        if (bytes > maxBytes) throw new TooManyRows();
        rows.push(found);
      }
      chunk.release();
    }
  } catch (error) {
    const unread = unreadable(error);
    throw unread ? new InputError(`${input.name}: ${unread}`, { cause: error }) : error;
  } finally {
    await opened.close();
  }
  const withRows = all.filter((each) => each.rows > 0);
  const sum = (of: (counts: Counts) => number) => all.reduce((total, each) => total + of(each), 0);
  return {
    rows,
    rejected: sum(({ rejected }) => rejected),
    rejects: rejects.slice(0, 5),
    first: withRows.map(({ first }) => first).sort()[0] ?? '',
    last:
      withRows
        .map(({ last }) => last)
        .sort()
        .at(-1) ?? '',
    figures: measuresOf(familyOf(catalog, family)).map((_, n) => ({
      values: sum(({ figures }) => figures[n]?.[0] ?? 0),
      zeros: Math.min(noZeros, ...all.map(({ figures }) => figures[n]?.[1] ?? noZeros)),
    })),
  };
}

function statementsOf(
  { records: judged, isEvent, params, settings, tables }: JudgedPiece,
  catalog: Catalog,
  familyName: string,
  timezone: string,
  days: Days,
) {
  const family = familyOf(catalog, familyName);
  const figures = figuresFrom(family, (name) => `e.${family.measures[name]?.sumOf}`);
  const powers = Array.from({ length: 12 }, (_, n) => `toInt128(${10 ** (n + 1)})`).join(', ');
  const records = `SELECT toDate(e.event_time, ${quoted(timezone)}) AS day, e.${keyOf(catalog, familyName)} AS key, ${figures} AS f,
    toFloat64(e.line) AS at_line, e.faults AS faults, ${isEvent} AS is_row FROM (${judged}) AS e`;
  const counts = `SELECT toFloat64(countIf(notEmpty(faults))) AS rejected, toFloat64(countIf(is_row)) AS rows,
      arraySlice(groupArrayIf(5)((at_line AS line, faults)::Tuple(line Float64, faults Array(Tuple(field String, reason String))), notEmpty(faults)), 1, 5) AS rejects,
      toString(minIf(day, is_row)) AS first, toString(maxIf(day, is_row)) AS last,
      arrayZip(sumForEachIf(arrayMap(x -> toFloat64(x != 0), f), is_row), minForEachIf(zeros, is_row)) AS figures
    FROM (SELECT *, arrayMap(x -> if(x = 0, ${noZeros}., toFloat64(arrayCount(p -> toInt128(x) % p = 0, [${powers}]))), f) AS zeros FROM (${records}))`;
  const rows = `SELECT day, key, count() AS n, sumForEach(f) AS f FROM (${records})
    WHERE is_row AND day BETWEEN {from:Date} AND {to:Date} GROUP BY day, key\nFORMAT RowBinary`;
  return {
    counts: { query: counts, params, settings, tables },
    rows: { query: rows, params: { ...params, from: days.first, to: days.last }, settings, tables },
  };
}
