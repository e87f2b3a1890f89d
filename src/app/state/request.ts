import { comparedDaysOf, daysOf, type State } from './state.ts';

/** The endpoint that has what is asked for. */
export function pathOf({ family, dimensions, grain }: State): string {
  const by = [...dimensions, ...(grain === 'total' ? [] : ['date'])];
  return by.length ? `/v1/${family}/breakdowns/${by.join('_')}` : `/v1/${family}`;
}

/** Where the same is as a file, or a link to one; without its ending. */
export function filePathOf(state: State, kind: 'export' | 'links'): string {
  return pathOf(state).replace('/v1/', `/v1/${kind}/`).replace('/breakdowns/', '/');
}

/** The body of the request. */
export function bodyOf(state: State, today: string) {
  const { start, end } = daysOf(state, today);
  const compared = comparedTo(state, today);
  return {
    start_time: start,
    end_time: end,
    ...(state.grain !== 'total' && state.grain !== 'day' && { time_grain: state.grain }),
    ...(Object.keys(state.filters).length > 0 && { filters: state.filters }),
    ...(compared && { compare_to: compared }),
    ...(state.closed && { as_of: 'closed' }),
  };
}

function comparedTo(state: State, today: string) {
  const { compare } = state;
  if (typeof compare === 'string') return compare === 'none' ? undefined : compare;
  const days = comparedDaysOf(state, today);
  return days && { start_time: days.start, end_time: days.end };
}

/** Whether both states are answered by the same rows. */
export function sameRows(one: State, other: State, today: string): boolean {
  return (
    pathOf(one) === pathOf(other) &&
    JSON.stringify(bodyOf(one, today)) === JSON.stringify(bodyOf(other, today))
  );
}
