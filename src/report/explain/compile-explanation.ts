import { rollupTable } from '../../../catalog/breakdowns.ts';
import type { Family } from '../../../catalog/catalog.ts';
import { loadOfChunk } from '../../../clickhouse/came-between.ts';
import { foldedChunk } from '../../../clickhouse/consistency/fold-events.ts';
import type { ReadStatement } from '../../../clickhouse/reader.ts';
import { readSettings } from '../compile.ts';
import { rfc3339 } from '../day-changed.ts';
import { reportFormats } from '../formats.ts';
import { filterConditions, sourceParameters } from '../from-clause.ts';
import { ofRange, owned, ownedOn } from '../owned.ts';
import type { ExplainedRow } from './explain-request.ts';

/** Parts that are told one by one, those that came first; the others are one part together. */
const mostParts = 10_000;

/** Whether the statement found parts that do not add up to the row. */
export function differs(error: unknown): boolean {
  return error instanceof Error && 'type' in error && error.type === 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO';
}

/**
 * The statement whose one row is the answer, `result`: the figures of the row as the report has them, from its rollup,
 * and the parts that it is made of, from the events. It fails where they do not add up to the last digit: see `differs`.
 * @param withFiles parts also say where they are in which file, which is for operators
 */
export function compileExplanation(
  { plan, row }: ExplainedRow,
  { withFiles = false }: { readonly withFiles?: boolean } = {},
): ReadStatement {
  const { family } = plan;
  const also = [...Object.keys(row).map((key) => `${key} = {row_${key}:String}`), ...filterConditions(plan)];
  const ofRow = [owned, ...also].join(' AND ');
  const ofEvents = [ownedOn(ofRange, family.owner), ...also].join(' AND ');
  const query = [
    'WITH',
    `(SELECT mapFromArrays(groupArray(c.day), groupArray(c.at)) FROM (SELECT day, max(c.confirmed_at) AS at FROM confirmations AS c WHERE ${owned} GROUP BY day) AS c) AS confirmed_days,`,
    // A scalar, because it is needed twice, and read once.
    `(${partsOf(family, ofEvents)}) AS found,`,
    'arrayMap(each -> each.part, found) AS chunks_found,',
    '(SELECT groupUniqArray(c.load_id) FROM load_chunks AS c WHERE chunk IN (SELECT arrayJoin(chunks_found))) AS loads_found',
    'SELECT tuple(cell.figures AS row, s.parts AS parts) AS result',
    `FROM (SELECT ${figuresOf(family, 'told.part')}, arraySort(part -> (part.loaded_at, ifNull(part.chunk, ''), ifNull(part.reason, '')), groupArray(told.part)) AS parts`,
    `FROM (SELECT ${part(family, withFiles)} AS part FROM (SELECT arrayJoin(found) AS p) AS f`,
    `LEFT JOIN (${claims(withFiles)}) AS c ON c.chunk = p.part`,
    'LEFT JOIN (SELECT load_id, toString(l.kind) AS kind, l.file AS file FROM loads AS l FINAL WHERE load_id IN (SELECT arrayJoin(loads_found))) AS l ON l.load_id = c.load) AS told',
    `) AS s CROSS JOIN (SELECT ${figuresOf(family, 'r')}`,
    `FROM ${rollupTable(plan.breakdown.family, plan.reads)} AS r PREWHERE ${ofRow}) AS cell`,
    "WHERE throwIf(s.figures != cell.figures, 'the parts do not add up to the row') = 0",
  ].join('\n');
  const ids = Object.entries(row).map(([key, id]) => [`row_${key}`, id]);
  return {
    query,
    params: { ...sourceParameters(plan), ...Object.fromEntries(ids), most: `${mostParts}` },
    settings: {
      ...readSettings(plan, { events: family.owner }),
      ...reportFormats.ndjson.settings,
      // The sizes of texts, which would be read instead of comparing with '', are no columns that the reporter may read.
      optimize_functions_to_subcolumns: 0,
      // Fields of an answer have the names that the statement gives them.
      enable_named_columns_in_function_tuple: 1,
      // A statement that fails shall not have begun to answer.
      wait_end_of_query: 1,
    },
  };
}

/** Their sums, as one value. */
const figuresOf = (family: Family, from: string): string => `tuple(${sumsOf(family, from)}) AS figures`;

const sumsOf = ({ measures }: Family, from: string): string =>
  Object.keys(measures)
    .map((name) => `sum(${from}.${name}) AS ${name}`)
    .join(', ');

/**
 * The events of the row by what they came in and why. What was inserted by hand has no chunk, what was folded one of its own.
 * Whether money is confirmed is asked for each day of a chunk, not for each event.
 */
function partsOf(family: Family, ofEvents: string): string {
  const { measures, money } = family;
  const ofDays = [
    'first_day',
    'last_day',
    'is_folded',
    'events',
    ...Object.keys(measures),
    'latest',
    'unconfirmed',
    'confirmed_at',
  ];
  const fields = ['part', 'reason', 'chunks', ...ofDays].map((name) => `g.${name} AS ${name}`);
  const added = (from: string) =>
    [
      `min(${from}.first_day) AS first_day, max(${from}.last_day) AS last_day, sum(${from}.events) AS events, ${sumsOf(family, from)}`,
      `max(${from}.latest) AS latest, max(${from}.unconfirmed) AS unconfirmed, max(${from}.confirmed_at) AS confirmed_at`,
    ].join(', ');
  return [
    `SELECT groupArray(tuple(${fields.join(', ')})) FROM (`,
    `SELECT n.place <= {most:UInt32} AS is_told, if(is_told, n.chunk, 'more') AS part, if(is_told, n.reason, '') AS reason,`,
    `if(max(n.chunk IN ('', '${foldedChunk}')), NULL, uniqExact(n.chunk)) AS chunks, max(n.chunk = '${foldedChunk}') AS is_folded, ${added('n')}`,
    `FROM (SELECT d.chunk AS chunk, d.reason AS reason, ${added('d')}, row_number() OVER (ORDER BY latest, chunk, reason) AS place`,
    'FROM (SELECT toString(e.chunk) AS chunk, toString(e.reason) AS reason, e.day AS first_day, e.day AS last_day, count() AS events,',
    `${Object.entries(measures)
      .map(([name, { sumOf }]) => `sum(e.${sumOf}) AS ${name}`)
      .join(', ')},`,
    'max(e.loaded_at) AS latest, confirmed_days[first_day] AS confirmed_day,',
    `toBool(maxIf(e.loaded_at, ${money} != 0 AND NOT e.confirmed) > confirmed_day) AS unconfirmed,`,
    'if(confirmed_day >= latest, confirmed_day, toDateTime64(0, 6)) AS confirmed_at',
    `FROM events AS e PREWHERE ${ofEvents} GROUP BY chunk, reason, e.day) AS d GROUP BY chunk, reason) AS n GROUP BY is_told, part, reason) AS g`,
  ].join('\n');
}

const claims = (withFiles: boolean): string =>
  `SELECT chunk, ${loadOfChunk} AS load${withFiles ? ', max(c.first_line) AS first_line, max(c.first_byte) AS first_byte, max(c.bytes) AS bytes' : ''} FROM load_chunks AS c WHERE chunk IN (SELECT arrayJoin(chunks_found)) GROUP BY chunk`;

/** What the answer says of a part; fields without a value are null. */
function part({ measures }: Family, withFiles: boolean): string {
  const ifLoaded = (value: string) => `if(c.load = '', NULL, ${value})`;
  const fields: Record<string, string> = {
    kind: `multiIf(p.part = '${foldedChunk}', 'pruned', p.part = '', 'by_hand', p.part = 'more', 'more', l.kind = 'replay', 'replay', 'events')`,
    load: ifLoaded('c.load'),
    corrects: "if(l.kind = 'replay', replaceOne(l.file, 'replay of ', ''), NULL)",
    chunk: `if(p.part IN ('', '${foldedChunk}', 'more'), NULL, p.part)`,
    reason: "nullIf(p.reason, '')",
    chunks: 'p.chunks',
    first_day: 'p.first_day',
    last_day: 'p.last_day',
    events: 'if(p.is_folded, NULL, p.events)',
    ...Object.fromEntries(Object.keys(measures).map((name) => [name, `p.${name}`])),
    loaded_at: rfc3339('p.latest'),
    unconfirmed: 'p.unconfirmed',
    confirmed_at: `if(toUInt64(p.confirmed_at) = 0, NULL, ${rfc3339('p.confirmed_at')})`,
    ...(withFiles && {
      file: ifLoaded('l.file'),
      first_line: ifLoaded('c.first_line'),
      first_byte: ifLoaded('c.first_byte'),
      bytes: ifLoaded('c.bytes'),
    }),
  };
  return `tuple(${Object.entries(fields)
    .map(([name, value]) => `${value} AS ${name}`)
    .join(', ')})`;
}
