import { familyOf } from '../../../catalog/breakdowns.ts';
import { loadOfChunk } from '../../../clickhouse/came-between.ts';
import type { ReadStatement } from '../../../clickhouse/reader.ts';
import { addDays } from '../../report/days.ts';
import { ownedOn } from '../../report/owned.ts';
import type { Clock } from './clocks.ts';
import {
  type Compared,
  figuresFrom,
  keyOf,
  measuresOf,
  onlyUsed,
  rollupRows,
  type Side,
  sent,
  statementOf,
} from './sides.ts';

/** What ours would be if the explanations that were found are true. */
export interface Model {
  /** How their time is cut into days; absent: as ours. */
  readonly clock?: Clock;
  /** What was loaded later is not in their report: UTC, `yyyy-mm-dd hh:mm:ss.ffffff`. */
  readonly until?: string;
  /** The same of conversions alone. */
  readonly conversionsUntil?: string;
  readonly missingLoads: readonly string[];
  readonly doubledLoads: readonly string[];
  /** Days on which one side has nothing: neither is compared. */
  readonly leftOutDays: readonly string[];
  readonly doubledDays: readonly string[];
  /** Their keys that are ours under another name. */
  readonly renamed: readonly { readonly theirs: string; readonly ours: string }[];
}

export const plainModel: Model = {
  missingLoads: [],
  doubledLoads: [],
  leftOutDays: [],
  doubledDays: [],
  renamed: [],
};

/** The measure that comes late where a conversion follows days after its click. */
export const lateMeasure = 'conversions';

/** SQL: which events are read; their days by another clock may be those beside the range. */
export const eventsRead = (compared: Compared): string =>
  ownedOn(['events_first', 'events_last'], familyOf(compared.catalog, compared.family).owner);

/** SQL: of each chunk of these events the load that loaded it, or the last that tried. */
export const loadOfChunks = (compared: Compared): string =>
  `SELECT toString(c.chunk) AS chunk, ${loadOfChunk} AS load FROM load_chunks AS c
   WHERE chunk IN (SELECT toString(e.chunk) FROM events AS e WHERE ${eventsRead(compared)}) GROUP BY chunk`;

/** The tables and parameters of what reads as the model does. */
export function modelReading(compared: Compared, model: Model) {
  const { clock, until = '', conversionsUntil = '' } = model;
  return {
    reads: { events: familyOf(compared.catalog, compared.family).owner },
    params: {
      events_first: addDays(compared.first, -1),
      events_last: addDays(compared.last, 1),
      switches: `[${clock?.switches.join(',') ?? ''}]`,
      offsets: `[${clock?.offsets.join(',') ?? ''}]`,
      until,
      conversions_until: conversionsUntil,
      missing_loads: model.missingLoads,
      doubled_loads: model.doubledLoads,
      doubled_days: model.doubledDays,
      left_out_days: model.leftOutDays,
    },
  };
}

/** SQL of the day of an event by a clock, from its time in seconds. */
export const dayBy = (time: string, switches: string, offsets: string): string =>
  `toDate(toUInt16(intDiv(${time} + ${offsets}[1 + arrayCount(at -> at <= ${time}, ${switches})], 86400)))`;

/** SQL of the day that the model counts an event on. */
export function dayOf({ clock }: Model): string {
  return clock
    ? dayBy('toInt64(toUnixTimestamp(e.event_time))', '{switches:Array(Int64)}', '{offsets:Array(Int64)}')
    : 'e.day';
}

/** SQL of how often the model counts a measure of an event; undefined: as it is. */
function weightOf(compared: Compared, model: Model, measure: string): string | undefined {
  const { until, conversionsUntil, missingLoads, doubledLoads } = model;
  const inLoads = (name: string) =>
    `e.chunk IN (SELECT l.chunk FROM (${loadOfChunks(compared)}) AS l WHERE l.load IN {${name}:Array(String)})`;
  const before = (name: string) => `(e.loaded_at <= toDateTime64({${name}:String}, 6, 'UTC'))`;
  const factors = [
    ...(until === undefined ? [] : [before('until')]),
    ...(conversionsUntil === undefined || measure !== lateMeasure ? [] : [before('conversions_until')]),
    ...(missingLoads.length > 0 ? [`(NOT ${inLoads('missing_loads')})`] : []),
    ...(doubledLoads.length > 0 ? [`(1 + (${inLoads('doubled_loads')}))`] : []),
  ];
  return factors.length > 0 ? factors.join(' * ') : undefined;
}

/** SQL of the sum of a measure as the model counts it, over `events AS e`. */
export function summed(compared: Compared, model: Model): (measure: string) => string {
  const { measures } = familyOf(compared.catalog, compared.family);
  return (name) => {
    const weight = weightOf(compared, model, name);
    const amount = `e.${measures[name]?.sumOf}`;
    return weight ? `sum(${amount} * toUInt8(${weight}))` : `sum(${amount})`;
  };
}

/** Ours as the model has it. */
export function oursBy(compared: Compared, model: Model): ReadStatement {
  const { catalog, family, used } = compared;
  const { clock, leftOutDays, doubledDays } = model;
  const isPlain =
    !clock && measuresOf(familyOf(catalog, family)).every((name) => !weightOf(compared, model, name));
  if (isPlain && leftOutDays.length + doubledDays.length === 0) return rollupRows(compared);
  const plain = rollupRows(compared);
  const figures = figuresFrom(familyOf(catalog, family), summed(compared, model));
  const read = isPlain
    ? plain.query
    : `SELECT ${dayOf(model)} AS on_day, e.${keyOf(catalog, family)} AS key, toUInt64(0) AS n, ${onlyUsed(figures, { used })} AS f
       FROM events AS e WHERE ${eventsRead(compared)} GROUP BY on_day, key`;
  return statementOf(
    compared,
    `SELECT s.${isPlain ? 'day' : 'on_day'} AS day, s.key AS key, s.n AS n, ${timesDoubled('s.f', 'day')} AS f
     FROM (${read}) AS s WHERE day BETWEEN {first:Date} AND {last:Date} AND NOT ${leftOut('day')} AND arrayExists(x -> x != 0, s.f)`,
    modelReading(compared, model),
  );
}

/** SQL of figures of a day as the model has them, where theirs may count the day twice. */
export const timesDoubled = (figures: string, day: string): string =>
  `arrayMap(x -> x * if(has({doubled_days:Array(String)}, toString(${day})), 2, 1), ${figures})`;

/** SQL: the day is not compared. */
export const leftOut = (day: string): string => `has({left_out_days:Array(String)}, toString(${day}))`;

/** Theirs as the model has it: without the days that are not compared, and under our keys. */
export function theirsBy(compared: Compared, { leftOutDays, renamed }: Model, theirs: Side): ReadStatement {
  return statementOf(
    compared,
    `SELECT t.day AS day, id AS key, sum(t.n) AS n, sumForEach(t.f) AS f FROM (
       SELECT *, transform(key, {from:Array(String)}, {to:Array(String)}, key) AS id FROM theirs) AS t
     WHERE NOT ${leftOut('t.day')} GROUP BY day, id`,
    {
      tables: { theirs: sent(theirs) },
      params: {
        from: ['', ...renamed.map((each) => each.theirs)],
        to: ['', ...renamed.map((each) => each.ours)],
        left_out_days: leftOutDays,
      },
    },
  );
}
