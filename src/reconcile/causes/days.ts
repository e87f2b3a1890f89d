import { enough, score } from '../model/score.ts';
import { bothSides } from '../model/sides.ts';
import { type Cause, few, onBoth } from './cause.ts';

/** Days on which only one side has anything. That is seen, and not concluded, so it needs no score. */
export const missingDays: Cause = async (state) => {
  const { compared, model } = state;
  const has = (side: string) => `countIf(arrayExists(x -> x != 0, ${side}))`;
  const days = await compared.reader.rows<{ day: string; side: 'ours' | 'theirs' }>(
    onBoth(
      state,
      `SELECT toString(b.day) AS day, if(${has('o')} > 0, 'ours', 'theirs') AS side
       FROM (${bothSides(compared)}) AS b GROUP BY b.day HAVING (${has('o')} = 0) != (${has('t')} = 0) ORDER BY b.day`,
    ),
  );
  if (days.length === 0) return undefined;
  const of = (side: string) => days.filter((each) => each.side === side).map(({ day }) => day);
  const told = [
    ...(of('ours').length > 0 ? [`their report has nothing of ${few(of('ours'))}`] : []),
    ...(of('theirs').length > 0 ? [`ours has nothing of ${few(of('theirs'))}`] : []),
  ];
  return {
    cause: 'missing_day',
    what: told.join('; '),
    about: { days: of('ours'), their_days: of('theirs') },
    model: { ...model, leftOutDays: [...model.leftOutDays, ...days.map(({ day }) => day)] },
  };
};

/** Days of which theirs has everything twice. */
export const doubledDays: Cause = async (state) => {
  const { compared, scale, model } = state;
  const days = await compared.reader.rows<{ day: string; score: number; days: number }>(
    onBoth(
      state,
      `SELECT toString(s.day) AS day, s.score AS score, s.days AS days FROM (
         SELECT b.day AS day, sum(${score(scale)}) AS score, toFloat64(count() OVER ()) AS days
         FROM (SELECT *, arrayMap(x -> x * 2, o) AS p FROM (${bothSides(compared)})) AS b GROUP BY b.day) AS s
       ORDER BY day`,
    ),
  );
  const found = days
    .filter((each) => each.score >= enough(each.days) && !model.doubledDays.includes(each.day))
    .map(({ day }) => day);
  if (found.length === 0) return undefined;
  return {
    cause: 'doubled_day',
    what: `their report counts ${few(found)} twice`,
    about: { days: found },
    model: { ...model, doubledDays: [...model.doubledDays, ...found] },
  };
};
