import { changesTable, rollupTable } from '../../catalog/breakdowns.ts';
import { cameBetween } from '../../clickhouse/came-between.ts';
import type { Reader, ReadStatement } from '../../clickhouse/reader.ts';
import { asOfClose } from './closed-months.ts';
import { readSettings } from './compile.ts';
import { rfc3339, safelyBefore, timeOf } from './day-changed.ts';
import { InvalidRequest } from './invalid-request.ts';
import { dayParameters, ofCompared, ofRange, ownedOn } from './owned.ts';
import { onAllShards, type Past, type Plan } from './plan.ts';
import { schedulingSettings } from './stream.ts';

/** Nobody can tell what reports had at the moment that one asks for. */
export class AsOfTooOld extends Error {}

const moment = timeOf('moment');

interface Asking {
  /** Aborting it cancels what is asked. */
  readonly signal: AbortSignal;
  /** Of what reads as much as a report. */
  readonly timeoutSeconds: number;
}

export interface AskingOfThen extends Asking {
  /** Does what reads as much as a report. */
  readonly inPlace: (work: () => Promise<void>) => Promise<void>;
}

/** The same plan of the rows that it asks for: of today, of a close, or of a moment. @throws as these do */
export function asOf(reader: Reader, plan: Plan, asking: AskingOfThen): Promise<Plan> {
  return plan.options.moment === undefined ? asOfClose(reader, plan) : asOfMoment(reader, plan, asking);
}

/**
 * The same plan of the rows as they were at a moment. What it is computed from must still be so when the answer has been
 * read: see `requireSameThen`.
 * @throws {AsOfTooOld} when that cannot be told
 */
async function asOfMoment(reader: Reader, today: Plan, asking: AskingOfThen): Promise<Plan> {
  const plan = onAllShards(today);
  const past = await stateThen(reader, plan, asking.signal);
  const ofThen = { ...plan, past };
  if (past.changed.length > 0) await asking.inPlace(() => requireTold(reader, ofThen, asking));
  return ofThen;
}

/**
 * To be called when what a plan asks for has been read, before anybody sees it and in the place of the report.
 * @throws {AsOfTooOld} when that may be of two states of the store
 */
export async function requireSameThen(reader: Reader, plan: Plan, asking: Asking): Promise<void> {
  const { past } = plan;
  if (!past) return;
  const { changed, rewrites, lastChange } = await stateThen(reader, plan, asking.signal);
  if (rewrites !== past.rewrites || changed.join() !== past.changed.join()) {
    throw new AsOfTooOld('what was loaded in these months changed while the report was made: ask again');
  }
  // Events that came meanwhile may have been on their way at the moment.
  if (lastChange !== past.lastChange) await requireTold(reader, { ...plan, past }, asking);
}

/** @throws {AsOfTooOld} for what a rewrite stands against */
async function stateThen(reader: Reader, plan: Plan, signal: AbortSignal): Promise<Past> {
  const [state] = await reader.rows<State>(stateStatement(plan), { signal });
  if (!state) throw new Error('ClickHouse did not tell what was rewritten');
  if (state.ahead) throw new InvalidRequest('as_of', 'must not be in the future');
  if (state.open) {
    throw new AsOfTooOld(
      'what was loaded in these months is being taken back, replaced or mended, or that was interrupted: no moment can be told until it is completed',
    );
  }
  if (state.until !== '') throw tooOld(state.until);
  return { changed: state.changed, rewrites: state.rewrites, lastChange: state.lastChange };
}

const tooOld = (from: string) => new AsOfTooOld(`what reports said can be told from ${from} on`);

interface State extends Past {
  readonly ahead: 0 | 1;
  readonly open: 0 | 1;
  /** RFC 3339; empty where nothing stands against it. */
  readonly until: string;
}

const untilTold = (time: string) => `if(toUInt64(${time}) = 0, '', ${rfc3339(time)})`;

/** The days that changed since, and what stands against the moment: rewrites, and names and confirmations that came just then. */
function stateStatement(plan: Plan): ReadStatement {
  const { compared, breakdown } = plan;
  const changes = changesTable(breakdown.family);
  const isHeld = `(r.lost OR r.began_at <= ${moment}) AND ${moment} < r.ended_at`;
  const changed = (table: string) =>
    `SELECT day, d.changed_at AS changed_at FROM ${table} AS d WHERE ${ownedDays(plan)} AND d.changed_at > ${safelyBefore(moment)}`;
  const shown = (table: string, since: string, where: string) =>
    `SELECT max(h.shown_by) AS shown_by FROM ${table} AS h FINAL WHERE ${where} AND h.${since} <= ${moment} AND ${moment} < h.shown_by`;
  const query = [
    'WITH (SELECT (arraySort(groupUniqArray(toString(c.day))), toString(max(c.changed_at))) FROM (',
    `${changed(changes)} UNION ALL ${changed(rollupTable(breakdown.family, []))}) AS c) AS days,`,
    `(SELECT max(s.shown_by) FROM (${shown('past_names', 'changed_at', 'account_id = {account:String}')} UNION ALL`,
    `${shown('past_confirmations', 'made_at', ownedDays(plan))}) AS s) AS names`,
    `SELECT toUInt8(${moment} > now64(6, 'UTC')) AS ahead, toUInt8(countIf(r.ended_at = 0) > 0) AS open,`,
    `${untilTold(`greatest(maxIf(r.ended_at, ${isHeld}), names)`)} AS until, toString(maxIf(r.version, month > 0)) AS rewrites,`,
    'days.1 AS changed, days.2 AS lastChange',
    'FROM rewrites AS r FINAL WHERE month = 0 OR month BETWEEN toYYYYMM({first:Date}) AND toYYYYMM({last:Date})',
    ...(compared
      ? ['OR month BETWEEN toYYYYMM({compared_first:Date}) AND toYYYYMM({compared_last:Date})']
      : []),
  ].join('\n');
  const own = { [changes]: 'account_id', past_names: 'account_id', past_confirmations: 'account_id' };
  const settings = { max_threads: 1, ...readSettings(plan, own) };
  return { query, params: paramsOf(plan), settings };
}

/** @throws {AsOfTooOld} when the moment is one at which events of changed days were on their way */
async function requireTold(
  reader: Reader,
  plan: Plan & Required<Pick<Plan, 'past'>>,
  { signal, timeoutSeconds }: Asking,
): Promise<void> {
  const { owner } = plan.family;
  const ofThen = `${ownedDays(plan, owner)} AND day IN {changed_days:Array(Date)}`;
  const query = [
    // A scalar, because it is needed twice, and read once.
    `WITH (SELECT groupUniqArray(toString(e.chunk)) FROM events AS e PREWHERE ${ofThen}) AS chunks_found,`,
    `(SELECT max(p.came_by) FROM past_events AS p PREWHERE ${ofThen} AND came_after <= ${moment} AND ${moment} < came_by AND left_at > ${moment}) AS past,`,
    `(SELECT maxIf(if(toUInt64(came.came_by) = 0, toDateTime64('2200-01-01', 6, 'UTC'), came.came_by), came.came_after <= ${moment} AND (toUInt64(came.came_by) = 0 OR ${moment} < came.came_by)) FROM (`,
    `SELECT chunk, ${cameBetween()} FROM load_chunks AS c WHERE chunk IN (SELECT arrayJoin(chunks_found)) GROUP BY chunk) AS came) AS present`,
    `SELECT toUInt8(has(chunks_found, '')) AS by_hand, toUInt8(greatest(past, present) >= toDateTime64('2200-01-01', 6, 'UTC')) AS doubtful,`,
    `${untilTold('greatest(past, present)')} AS until`,
  ].join('\n');
  const statement = {
    query,
    params: { ...paramsOf(plan), changed_days: plan.past.changed },
    settings: { ...schedulingSettings(false, timeoutSeconds), ...readSettings(plan) },
  };
  const [told] = await reader.rows<{ by_hand: 0 | 1; doubtful: 0 | 1; until: string }>(statement, { signal });
  if (!told) throw new Error('ClickHouse did not tell which events were on their way');
  if (told.by_hand) throw new AsOfTooOld('some events of these days came past the loader: nobody knows when');
  if (told.doubtful)
    throw new AsOfTooOld(
      'a load that is still running or was interrupted has events on these days: nobody knows yet since when reports have them',
    );
  if (told.until !== '') throw tooOld(told.until);
}

function ownedDays({ compared }: Plan, owner = 'account_id'): string {
  const ranges = [ownedOn(ofRange, owner)];
  if (compared) ranges.push(ownedOn(ofCompared, owner));
  return `(${ranges.join(' OR ')})`;
}

const paramsOf = (plan: Plan) => ({ ...dayParameters(plan), moment: plan.options.moment ?? '' });
