import { familyOf } from '../../../catalog/breakdowns.ts';
import type { Clock } from '../model/clocks.ts';
import { dayBy, eventsRead, leftOut, summed, timesDoubled } from '../model/model.ts';
import { enough, score } from '../model/score.ts';
import { bothSides, figuresFrom, keyOf, measuresOf, noneOf, onlyUsed } from '../model/sides.ts';
import { type Cause, few, onBoth, type State } from './cause.ts';
import { lacking, lastMoments } from './loads.ts';

/** The keys by which clocks are told apart: those that differ most. */
const mostKeys = 20;
/** Clocks that fit as well and are named. */
const mostListed = 3;

/** Days that were cut by another clock: all offsets, and zones that changed theirs meanwhile. */
export const timeZone: Cause = async (state) => {
  const { compared, model } = state;
  if (model.clock) return undefined;
  const clocks = await state.clocks();
  const byKey = await scores(state, clocks, 'key');
  // Their keys may have other names; sums of all keys have none.
  const byDay = await scores(state, clocks, "''");
  const [scored] = [byKey, byDay].sort((a, b) => Math.max(...b) - Math.max(...a));
  const best = Math.max(...(scored ?? []));
  if (!scored || best < enough(2 * clocks.length)) return undefined;
  const [clock, ...others] = clocks.filter((_, n) => scored[n] === best);
  if (!clock) return undefined;
  const named = others.slice(0, mostListed).map(({ name }) => name);
  const also = others.length > 0 ? `; ${few(named, others.length)} would fit as well` : '';
  return {
    cause: 'time_zone',
    what: `their days are those of ${clock.name}, ours of ${compared.timezone}${also}`,
    about: {
      zone: clock.name,
      our_zone: compared.timezone,
      ...(others.length > 0 && { other_zones: others.map(({ name }) => name) }),
    },
    model: { ...model, clock },
  };
};

/**
 * What was loaded after a moment is not in their report, whose days are those of another clock: each hides the other where both
 * move every figure. The clock is found by itself as soon as the loads are taken away.
 */
export const laterLoadsElsewhere: Cause = async (state) => {
  const { model } = state;
  if (model.clock || model.until !== undefined) return undefined;
  const clocks = await state.clocks();
  let best = { until: '', score: 0 };
  const moments = await lastMoments(state);
  for (const until of moments) {
    const score = Math.max(...(await scores({ ...state, model: { ...model, until } }, clocks, "''")));
    if (score > best.score) best = { until, score };
  }
  return best.score >= enough(moments.length * clocks.length) ? lacking(state, best.until) : undefined;
};

/** What each clock scores. @param key SQL of what is told apart beside days */
async function scores(state: State, clocks: readonly Clock[], key: string): Promise<readonly number[]> {
  const { compared, scale, model } = state;
  const { catalog, family, used } = compared;
  const measures = measuresOf(familyOf(catalog, family));
  const none = noneOf(used);
  const amount = summed(compared, model);
  const sums = measures.map((name) => `${amount(name)} AS ${name}`);
  const added = measures.map((name) => `sum(w.${name}) AS ${name}`);
  const moved = onlyUsed(
    figuresFrom(familyOf(catalog, family), (name) => name),
    compared,
  );
  const predicted = timesDoubled(moved, 'day');
  const rows = await compared.reader.rows<{ clock: number; score: number }>(
    onBoth(
      state,
      `WITH both AS (${bothSides(compared, key)}),
         kept AS (SELECT key FROM both GROUP BY key ORDER BY sum(arraySum((o, t) -> toFloat64(abs(t - o)), o, t)) DESC LIMIT ${mostKeys}),
         slots AS (
           SELECT toInt64(intDiv(toUnixTimestamp(e.event_time), 900) * 900) AS slot, ${key === 'key' ? `e.${keyOf(catalog, family)}` : key} AS key, ${sums.join(', ')}
           FROM events AS e WHERE ${eventsRead(compared)} AND key IN (kept) GROUP BY slot, key)
       SELECT toFloat64(c.clock) AS clock, sum(${score(scale)}) AS score FROM (
         SELECT clock, day, key, sum(u.n) AS n, sumForEach(u.o) AS o, sumForEach(u.t) AS t, sumForEach(u.p) AS p FROM (
           SELECT clock, day, key, toUInt64(0) AS n, ${none} AS o, ${none} AS t, ${predicted} AS p FROM (
             SELECT clock, ${dayBy('w.slot', '{all_switches:Array(Array(Int64))}[clock]', '{all_offsets:Array(Array(Int64))}[clock]')} AS day, w.key AS key, ${added.join(', ')}
             FROM slots AS w ARRAY JOIN range(1, ${clocks.length + 1}) AS clock GROUP BY clock, day, key)
           UNION ALL
           SELECT clock, b.day AS day, b.key AS key, b.n AS n, b.o AS o, b.t AS t, ${none} AS p
           FROM both AS b ARRAY JOIN range(1, ${clocks.length + 1}) AS clock WHERE b.key IN (kept)) AS u
         GROUP BY clock, day, key) AS c
       WHERE c.day BETWEEN {first:Date} AND {last:Date} AND NOT ${leftOut('c.day')}
       GROUP BY c.clock`,
      {
        all_switches: nested(clocks.map(({ switches }) => switches)),
        all_offsets: nested(clocks.map(({ offsets }) => offsets)),
      },
    ),
  );
  const found = new Map(rows.map((row) => [row.clock, row.score]));
  return clocks.map((_, n) => found.get(n + 1) ?? 0);
}

const nested = (lists: readonly (readonly number[])[]) =>
  `[${lists.map((list) => `[${list.join(',')}]`).join(',')}]`;
