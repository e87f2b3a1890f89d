import { dimensionOfField } from '../state/fields.ts';
import { bodyOf, pathOf } from '../state/request.ts';
import type { Session } from '../state/session.ts';
import { initialState, type State } from '../state/state.ts';
import type { ReportRequest } from './protocol.ts';

/** What the rows of a report are asked for with. */
export function reportRequest(state: State, { key, today }: Session): ReportRequest {
  const url = location.origin + pathOf(state);
  return { url, key, body: { ...bodyOf(state, today), ids: true }, family: state.family };
}

/** The same of a report that has every value of a field, whatever is filtered. */
export function valuesRequest(
  { family, range, closed }: State,
  field: string,
  session: Session,
): ReportRequest {
  const dimension = dimensionOfField(family, field);
  const dimensions = dimension ? [dimension] : [];
  return reportRequest({ ...initialState(family), grain: 'total', range, closed, dimensions }, session);
}
