import { enough, score } from '../model/score.ts';
import { bothSides, noneOf } from '../model/sides.ts';
import { type Cause, few, onBoth } from './cause.ts';

/** Keys that one side alone has and that are held against each other: the largest. */
const mostKeys = 200;

/**
 * Keys that only theirs has, with the figures of one that only ours has. A pair is told when each is the only one that fits the
 * other.
 */
export const otherNames: Cause = async (state) => {
  const { compared, scale, model } = state;
  const any = (side: string) => `countIf(arrayExists(x -> x != 0, ${side}))`;
  const only = (side: string, other: string) =>
    `SELECT key FROM both GROUP BY key HAVING ${any(side)} > 0 AND ${any(other)} = 0
     ORDER BY sum(arraySum(x -> toFloat64(abs(x)), ${side})) DESC LIMIT ${mostKeys}`;
  const none = noneOf(compared.used);
  const pairs = await compared.reader.rows<{ theirs: string; ours: string; score: number; tried: number }>(
    onBoth(
      state,
      `WITH both AS (${bothSides(compared)}), a AS (SELECT * FROM both WHERE key IN (${only('t', 'o')})), b AS (SELECT * FROM both WHERE key IN (${only('o', 't')}))
       SELECT q.theirs AS theirs, q.ours AS ours, sum(q.score) AS score,
         (SELECT toFloat64(uniqExact(key)) FROM a) * (SELECT toFloat64(uniqExact(key)) FROM b) AS tried
       FROM (
         SELECT theirs, ours, ${score(scale)} - arrayCount((p, t) -> p = 0 AND t != 0, p, t) AS score FROM (
           SELECT theirs, ours, day, sum(n) AS n, ${none} AS o, sumForEach(side_o) AS p, sumForEach(side_t) AS t FROM (
             SELECT a.key AS theirs, k.key AS ours, a.day AS day, a.n AS n, a.o AS side_o, a.t AS side_t FROM a CROSS JOIN (SELECT DISTINCT key FROM b) AS k
             UNION ALL
             SELECT k.key AS theirs, b.key AS ours, b.day AS day, b.n AS n, b.o AS side_o, b.t AS side_t FROM b CROSS JOIN (SELECT DISTINCT key FROM a) AS k)
           GROUP BY theirs, ours, day)) AS q
       GROUP BY theirs, ours HAVING score > 0 ORDER BY score DESC LIMIT 1000`,
    ),
  );
  const fitting = pairs.filter((pair) => pair.score >= enough(pair.tried));
  const isOnly = (pair: (typeof fitting)[number]) =>
    fitting.filter(({ theirs, ours }) => theirs === pair.theirs || ours === pair.ours).length === 1;
  const found = fitting.filter(isOnly).map(({ theirs, ours }) => ({ theirs, ours }));
  if (found.length === 0) return undefined;
  return {
    cause: 'other_name',
    what: few(found.map(({ theirs, ours }) => `their ${theirs} is ${ours} of ours`)),
    about: { names: found },
    model: { ...model, renamed: [...model.renamed, ...found] },
  };
};
