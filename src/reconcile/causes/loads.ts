import { familyOf } from '../../../catalog/breakdowns.ts';
import {
  dayOf,
  eventsRead,
  lateMeasure,
  loadOfChunks,
  modelReading,
  summed,
  timesDoubled,
} from '../model/model.ts';
import { enough, score } from '../model/score.ts';
import {
  bothSides,
  figuresFrom,
  keyOf,
  measuresOf,
  onlyUsed,
  statementOf,
  usedMeasures,
} from '../model/sides.ts';
import { type Cause, type Found, few, onBoth, type State } from './cause.ts';

/** Moments that are tried, the last ones, and keys by which they are told apart. */
const mostMoments = 300;
const mostKeys = 50;
/** Loads that are tried, the largest. */
const mostLoads = 1000;
/** Loads at the end that are taken away where the time zone may be another one, too. */
const mostLast = 4;
/** Loads that an explanation names. */
const mostListed = 3;

/** What was loaded after a moment is not in their report. */
export const corrections: Cause = async (state) => {
  const { model } = state;
  if (model.until !== undefined) return undefined;
  const at = await momentOf(state, measures(state));
  if (at === undefined) return undefined;
  return lacking(state, at);
};

/** Their report lacks what was loaded after a moment. */
export async function lacking(state: State, at: string): Promise<Found> {
  const { loads, isLate } = await loadedAfter(state, at);
  const [only, ...others] = loads;
  const one = only !== undefined && others.length === 0;
  const told = loads.length > 0 ? `: ${await listed(state, loads)}` : '';
  return {
    cause: isLate ? 'late_conversions' : one ? 'missing_load' : 'corrections',
    what: `their report lacks what was loaded after ${at} UTC${told}`,
    about: { loaded_after: at, loads },
    model: { ...state.model, until: at },
  };
}

/** Conversions that were loaded after a moment are not in their report; everything else is. */
export const lateConversions: Cause = async (state) => {
  const { model } = state;
  const late = measures(state).filter((name) => name === lateMeasure);
  if (model.until !== undefined || model.conversionsUntil !== undefined || late.length === 0)
    return undefined;
  const at = await momentOf(state, late);
  if (at === undefined) return undefined;
  return {
    cause: 'late_conversions',
    what: `their report lacks conversions that were loaded after ${at} UTC`,
    about: { loaded_after: at },
    model: { ...model, conversionsUntil: at },
  };
};

/** The load that brought all rows that only ours has, and nothing else. That is seen, so it needs no score. */
export const loadOfMissingRows: Cause = async (state) => {
  const { compared, model } = state;
  const loads = await compared.reader.rows<{ load: string }>(
    onBoth(
      state,
      `WITH both AS (${bothSides(compared)}),
         brought AS (
           SELECT l.load AS load, g.day AS day, g.key AS key, sumForEach(g.f) AS f FROM (${contributions(state, 'e.chunk')}) AS g
           INNER JOIN (${loadOfChunks(compared)}) AS l ON l.chunk = g.part
           WHERE g.day BETWEEN {first:Date} AND {last:Date} AND arrayExists(x -> x != 0, g.f) GROUP BY load, day, key)
       SELECT r.load AS load FROM brought AS r LEFT JOIN both AS b ON b.day = r.day AND b.key = r.key
       GROUP BY load
       HAVING count() = countIf(b.n = 0 AND b.o = r.f) AND count() = (SELECT countIf(n = 0) FROM both) AND count() < (SELECT count() FROM both)
       LIMIT 2`,
    ),
  );
  const [only, another] = loads;
  if (!only || another) return undefined;
  return {
    cause: 'missing_load',
    what: `the rows that only ours has are all that was brought by ${await listed(state, [only.load])}`,
    about: { loads: [only.load] },
    model: { ...model, missingLoads: [...model.missingLoads, only.load] },
  };
};

/** A load that their report lacks, or counts twice. */
export const singleLoads: Cause = async (state) => {
  const { compared, scale, model } = state;
  const [best] = await compared.reader.rows<{ load: string; sign: number; score: number; loads: number }>(
    onBoth(
      state,
      `WITH both AS (${bothSides(compared)}),
         brought AS (
           SELECT * FROM (${contributions(state, 'e.chunk')}) AS g INNER JOIN (${loadOfChunks(compared)}) AS l ON l.chunk = g.part),
         tried AS (SELECT load FROM brought WHERE load NOT IN {doubled_loads:Array(String)} GROUP BY load ORDER BY count() DESC, load LIMIT ${mostLoads})
       SELECT c.load AS load, toFloat64(c.sign) AS sign, sum(${score(scale)}) AS score, (SELECT toFloat64(count()) FROM tried) AS loads FROM (
         SELECT r.load AS load, sign, b.n AS n, b.o AS o, b.t AS t, arrayMap((o, f) -> o + sign * f, b.o, r.f) AS p
         FROM (SELECT load, day, key, sumForEach(f) AS f FROM brought WHERE load IN (tried) GROUP BY load, day, key) AS r
         INNER JOIN both AS b ON b.day = r.day AND b.key = r.key
         ARRAY JOIN [-1, 1] AS sign) AS c
       GROUP BY c.load, c.sign ORDER BY score DESC, load LIMIT 1`,
    ),
  );
  if (!best || best.score < enough(2 * best.loads)) return undefined;
  const { load, sign } = best;
  const told = await listed(state, [load]);
  const found = (cause: Found['cause'], verb: string, loads: Partial<Found['model']>): Found => ({
    cause,
    what: `their report ${verb} ${told}`,
    about: { loads: [load] },
    model: { ...model, ...loads },
  });
  return sign < 0
    ? found('missing_load', 'lacks', { missingLoads: [...model.missingLoads, load] })
    : found('doubled_load', 'counts twice', { doubledLoads: [...model.doubledLoads, load] });
};

const measures = ({ compared }: State) => usedMeasures(compared).map(({ name }) => name);

/** SQL of what ours is made of, in parts, by day and key. */
function contributions({ compared, model }: State, part: string): string {
  const { catalog, family } = compared;
  const figures = figuresFrom(familyOf(catalog, family), summed(compared, model));
  return `SELECT s.part AS part, s.on_day AS day, s.key AS key, ${timesDoubled('s.f', 's.on_day')} AS f FROM (
    SELECT toString(${part}) AS part, ${dayOf(model)} AS on_day, e.${keyOf(catalog, family)} AS key, ${onlyUsed(figures, compared)} AS f
    FROM events AS e WHERE ${eventsRead(compared)} GROUP BY part, on_day, key) AS s`;
}

/** The moment after which nothing of these measures that was loaded is in their report. */
async function momentOf(state: State, which: readonly string[]): Promise<string | undefined> {
  const { compared, scale } = state;
  const { catalog, family } = compared;
  const mask = measuresOf(familyOf(catalog, family)).map((name) => Number(which.includes(name)));
  const masked = `arrayMap((x, m) -> x * m, c.f, [${mask.join(', ')}])`;
  const minus = (part: string) => `arrayMap((x, y) -> x - y, rest, ${part})`;
  const [best] = await compared.reader.rows<{ at: string; score: number; moments: number }>(
    onBoth(
      state,
      `WITH both AS (${bothSides(compared)}),
         kept AS (SELECT key FROM both GROUP BY key ORDER BY sum(arraySum((o, t) -> toFloat64(abs(t - o)), o, t)) DESC LIMIT ${mostKeys}),
         brought AS (SELECT c.part AS part, c.day AS day, c.key AS key, ${masked} AS f FROM (${contributions(state, 'e.loaded_at')}) AS c WHERE arrayExists(x -> x != 0, f)),
         moments AS (SELECT DISTINCT part AS at FROM brought ORDER BY at DESC LIMIT ${mostMoments})
       SELECT c.at AS at, sum(${score(scale)}) AS score, (SELECT toFloat64(count()) FROM moments) AS moments FROM (
         SELECT m.at AS at, b.n AS n, b.o AS o, b.t AS t,
           arrayFold((rest, part) -> if(part.1 > m.at, ${minus('part.2')}, rest), r.parts, b.o) AS p
         FROM (SELECT day, key, groupArray((part, f)) AS parts FROM brought WHERE key IN (kept) GROUP BY day, key) AS r
         INNER JOIN both AS b ON b.day = r.day AND b.key = r.key
         CROSS JOIN moments AS m) AS c
       GROUP BY c.at ORDER BY score DESC, at DESC LIMIT 1`,
    ),
  );
  return best && best.score >= enough(best.moments) ? best.at : undefined;
}

/** When the loads before the last ones ended, the latest first. */
export async function lastMoments({ compared, model }: State): Promise<readonly string[]> {
  const rows = await compared.reader.rows<{ at: string }>(
    statementOf(
      compared,
      `SELECT toString(max(p.at)) AS at FROM (
         SELECT toString(e.chunk) AS chunk, max(e.loaded_at) AS at FROM events AS e WHERE ${eventsRead(compared)} GROUP BY chunk) AS p
       INNER JOIN (${loadOfChunks(compared)}) AS l ON l.chunk = p.chunk GROUP BY l.load ORDER BY at DESC LIMIT 1, ${mostLast}`,
      modelReading(compared, model),
    ),
  );
  return rows.map(({ at }) => at);
}

/** The loads that brought something of these days after a moment, and whether all of it was conversions. */
async function loadedAfter(state: State, at: string): Promise<{ loads: readonly string[]; isLate: boolean }> {
  const { compared } = state;
  const others = measures(state).filter((name) => name !== lateMeasure);
  const { measures: all } = familyOf(compared.catalog, compared.family);
  const isOther = others.map((name) => `e.${all[name]?.sumOf} != 0`).join(' OR ') || 'false';
  const [row] = await compared.reader.rows<{ loads: string[]; others: number }>(
    onBoth(
      state,
      `SELECT groupUniqArray(l.load) AS loads, toFloat64(sum(p.others)) AS others FROM (
         SELECT toString(e.chunk) AS chunk, countIf(${isOther}) AS others FROM events AS e
         WHERE ${eventsRead(compared)} AND e.loaded_at > toDateTime64({after:String}, 6, 'UTC') GROUP BY chunk) AS p
       LEFT JOIN (${loadOfChunks(compared)}) AS l ON l.chunk = p.chunk`,
      { after: at },
    ),
  );
  const loads = (row?.loads ?? []).filter((load) => load !== '').sort();
  return { loads, isLate: row?.others === 0 };
}

/** A few loads in words, with their files where those may be named. */
async function listed({ compared }: State, loads: readonly string[]): Promise<string> {
  const shown = loads.slice(0, mostListed);
  const query = `SELECT l.load_id AS load, l.file AS file FROM loads AS l FINAL WHERE load_id IN {loads:Array(String)}`;
  const rows = compared.namesFiles
    ? await compared.reader.rows<{ load: string; file: string }>(
        statementOf(compared, query, { params: { loads: shown } }),
      )
    : [];
  const files = new Map(rows.map(({ load, file }) => [load, ` (${file})`]));
  return few(
    shown.map((load) => `load ${load}${files.get(load) ?? ''}`),
    loads.length,
  );
}
