import { asked } from '../rows/asked.ts';
import type { Asked } from '../rows/protocol.ts';
import { pathOf } from '../state/request.ts';
import type { Opened } from '../state/session.ts';
import { ofShown } from '../state/state.ts';
import { askedOf, type Shown } from './download.ts';

/** When a report is sent, of which days, and to whom. */
export interface Sending {
  readonly to: readonly string[];
  readonly every: string;
  readonly period: string;
  readonly at: string;
  readonly attach: string;
  readonly language: string;
}

/** A schedule of the account, as the service tells it. */
export interface Schedule extends Sending {
  readonly id: string;
  readonly report: string;
  readonly body: { readonly time_grain?: 'week' | 'month' };
  readonly state: 'active' | 'paused' | 'ended';
  readonly not_agreed: readonly string[];
  readonly left: readonly string[];
  readonly mails: readonly {
    readonly recipient: string;
    readonly state: string;
    readonly time: string | null;
  }[];
}

export type Turn = 'pause' | 'resume' | 'remove';

/** Whether this service sends reports of accounts by mail. */
export const sendsMails = (): boolean => document.querySelector('template#mails') !== null;

export const listSchedules = (session: Opened): Promise<Asked<readonly Schedule[]>> =>
  asked('/v1/schedule/list', session);

export const turnSchedule = (session: Opened, turn: Turn, schedule: string): Promise<Asked<object>> =>
  asked(`/v1/schedule/${turn}`, session, { schedule });

/**
 * Schedules the report that is shown: its days are those of the period, so that a comparison with days of their own is left out, and
 * so are figures as they were closed, because few days are closed when they are sent.
 */
export function createSchedule(session: Opened, shown: Shown, sending: Sending): Promise<Asked<object>> {
  const { state } = shown;
  const compare = typeof state.compare === 'object' ? 'none' : state.compare;
  const sent = { ...shown, state: ofShown({ ...state, compare, closed: false }) };
  const { start_time: _, end_time: __, ...body } = askedOf(sent, session.today);
  return asked('/v1/schedule/create', session, {
    ...sending,
    report: pathOf(shown.state).replace('/v1/', '').replace('/breakdowns', ''),
    body,
  });
}
