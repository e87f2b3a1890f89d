import { isDeepStrictEqual } from 'node:util';
import { type Store, select } from '../../clickhouse/client.ts';
import { issueToken, listTokens, type StoredToken } from '../accounts/tokens.ts';
import { versionAfter } from '../accounts/versions.ts';
import type { Frequency, Period } from './due.ts';

/** A report that is sent by mail again and again. */
export interface Schedule {
  readonly id: string;
  readonly account: string;
  /** As exports are named: `campaigns/device_date`. */
  readonly report: string;
  /** The optional fields of the body of a report. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly period: Period;
  readonly every: Frequency;
  /** `hh:mm` in the time zone of the store. */
  readonly at: string;
  readonly to: readonly string[];
  readonly attach: 'xlsx' | 'csv';
  /** For how long a mail waits for its days to be final. */
  readonly waitHours: number;
  /** The id of the token that opens the report; empty: the sender makes one. */
  readonly token: string;
  /** Of the mail: a language of the page, with a country or without: `de-CH`. */
  readonly language: string;
  /** Empty: the operator made it. Else the token or the person that made it for their account; recipients are then asked first. */
  readonly madeBy: string;
  /** Ended: its token was revoked or has expired, or the one that made it was revoked. */
  readonly state: 'active' | 'paused' | 'ended';
  /** What was due before is not sent. */
  readonly since: Date;
}

/** A schedule that may have been removed. */
export type StoredSchedule = Omit<Schedule, 'state'> & { readonly state: Schedule['state'] | 'removed' };

/** Whether schedules send the same to the same recipients for the same maker: whoever got no answer asks for one again. */
export const isSame =
  ({ id: _, since: __, ...made }: Omit<Schedule, 'token'>) =>
  ({ id, since, token, ...each }: Schedule): boolean =>
    isDeepStrictEqual(each, made);

/** A removal has this version, so that no other change comes after it, whatever the clock of that change says. */
const lastVersion = '2200-01-01 00:00:00';

/**
 * Stores a new schedule, or another state of one.
 * @param reader reads it, where the user of the store may only write
 * @throws where ClickHouse has another state afterwards
 */
export async function storeSchedule(store: Store, schedule: StoredSchedule, reader = store): Promise<void> {
  const { account, to, waitHours, since, body, madeBy, ...same } = schedule;
  const { id, state } = schedule;
  const after = versionAfter("maxIf(s.version, s.state != 'removed')");
  const [next] = await select<{ version: string }>(
    reader,
    `SELECT toString(toTimeZone(${after}, 'UTC')) AS version FROM schedules AS s WHERE s.id = {id:String}`,
    { id },
  );
  const version = `${state === 'removed' ? lastVersion : next?.version}Z`;
  await store.insert({
    table: 'schedules',
    values: [
      {
        ...same,
        account_id: account,
        body: JSON.stringify(body),
        recipients: to,
        wait_hours: waitHours,
        made_by: madeBy,
        since: since.toISOString(),
        version,
      },
    ],
    format: 'JSONEachRow',
    clickhouse_settings: { date_time_input_format: 'best_effort' },
  });
  const [stored] = await select<{ state: string }>(
    reader,
    'SELECT toString(s.state) AS state FROM schedules AS s FINAL WHERE s.id = {id:String}',
    { id },
  );
  if (stored?.state !== state)
    throw new Error(`schedule ${id} was not ${state}, or was changed again; repeat the command`);
}

type Stored = Omit<Schedule, 'body' | 'since'> & { readonly body: string; readonly since_ms: number };

/** All but those that were removed, the oldest first. @param account absent: of all */
export async function listSchedules(store: Store, account = ''): Promise<Schedule[]> {
  const rows = await select<Stored>(
    store,
    `SELECT id, account_id AS account, report, body, toString(period) AS period, toString(every) AS every, at, recipients AS to,
            toString(attach) AS attach, wait_hours AS waitHours, token, language, made_by AS madeBy,
            if(token GLOBAL IN (SELECT id FROM tokens FINAL WHERE revoked_at IS NOT NULL OR expires_at <= now64(3))
               OR made_by GLOBAL IN (SELECT concat('token ', id) FROM tokens FINAL WHERE revoked_at IS NOT NULL)
               OR concat({label:String}, id) GLOBAL IN (SELECT label FROM tokens FINAL WHERE revoked_at IS NOT NULL),
               'ended', toString(s.state)) AS state,
            toFloat64(toUnixTimestamp64Milli(s.since)) AS since_ms
     FROM schedules AS s FINAL WHERE s.state != 'removed' AND ({account:String} = '' OR s.account_id = {account:String}) ORDER BY id`,
    { label: tokenLabel({ id: '' }), account },
  );
  return rows.map(({ body, since_ms, ...row }) => ({
    ...row,
    body: JSON.parse(body),
    since: new Date(since_ms),
  }));
}

/** Of a token that the schedule has for itself. */
export const tokenLabel = ({ id }: Pick<Schedule, 'id'>): string => `mails of schedule ${id}`;

/** The token that opens its report, if it is there. The schedule of a person, who has none, gets one of its own. */
export async function tokenOf(store: Store, schedule: Schedule): Promise<StoredToken | undefined> {
  const { account, token, report } = schedule;
  const label = tokenLabel(schedule);
  const find = async () => (await listTokens(store, { account, ...(token ? { id: token } : { label }) }))[0];
  const found = await find();
  if (found || token) return found;
  await issueToken(store, { account, family: report.split('/')[0], label });
  return find();
}

/**
 * An account's own schedules as if they were one: that a recipient was asked, and the answer, is noted of it. No schedule has such
 * an id.
 */
export const ownOf = (account: string): string => `account ${account}`;

/** The account whose own schedules such an id means; undefined: it is the id of one schedule. */
export const accountOfOwn = (id: string): string | undefined =>
  id.startsWith(ownOf('')) ? id.slice(ownOf('').length) : undefined;

/** What the recipients of a schedule answer of: all own ones of its account, or this one if the operator made it. */
export const answeredOf = ({ id, account, madeBy }: Pick<Schedule, 'id' | 'account' | 'madeBy'>): string =>
  madeBy ? ownOf(account) : id;

/** Notes that somebody wants the mails of an account's own schedules. */
export const agree = noting('agreed');
/** Notes that somebody wants no more mails. */
export const unsubscribe = noting('unsubscribed');

/**
 * Makes what notes an answer of a recipient, later than those before, whatever clocks say. It throws where another answer counts
 * afterwards.
 * @param table of such answers; what is made takes `schedule`, see {@link answeredOf}, and `reader`, which reads where the user of
 * the store may only write
 */
function noting(table: 'agreed' | 'unsubscribed') {
  return async (store: Store, schedule: string, recipient: string, reader = store): Promise<void> => {
    const said = { schedule, recipient };
    const of = 'WHERE schedule = {schedule:String} AND recipient = {recipient:String}';
    const [next] = await select<{ at: string }>(
      reader,
      `SELECT toString(greatest(now64(3, 'UTC'), max(a.at) + INTERVAL 1 MILLISECOND)) AS at
       FROM (SELECT at FROM agreed ${of} UNION ALL SELECT at FROM unsubscribed ${of}) AS a`,
      said,
    );
    await store.insert({ table, values: [{ ...said, ...next }], format: 'JSONEachRow' });
    const answer = (await listAnswers(reader, [schedule])).get(schedule)?.get(recipient);
    if (!answer || (answer.since !== undefined) !== (table === 'agreed'))
      throw new Error(`what ${recipient} says was not noted, or something else was said since`);
  };
}

/** What a recipient has said of mails. */
export interface Answer {
  /** Since when they want them; undefined: they want no more. */
  readonly since: Date | undefined;
  /** Whether they ever wanted them. */
  readonly hasAgreed: boolean;
}

export type Answers = ReadonlyMap<string, ReadonlyMap<string, Answer>>;

/**
 * The last answer of each recipient, by {@link answeredOf}. Whoever has a link may answer as often as they like: ClickHouse
 * makes one row of all that a recipient has said.
 * @param of the schedules, as they are answered
 */
export async function listAnswers(store: Store, of: readonly string[]): Promise<Answers> {
  const rows = await select<{ schedule: string; recipient: string; agreed: number; since_ms: number | null }>(
    store,
    `SELECT schedule, recipient, toUInt8(notEmpty(yes)) AS agreed,
            arrayFirstOrNull(t -> t > no, yes) AS since_ms
     FROM (SELECT schedule, recipient, arraySort(groupArrayIf(ms, wants)) AS yes, maxIf(ms, NOT wants) AS no
           FROM (SELECT schedule, recipient, toFloat64(toUnixTimestamp64Milli(at)) AS ms, true AS wants FROM agreed
                 UNION ALL
                 SELECT schedule, recipient, toFloat64(toUnixTimestamp64Milli(at)), false FROM unsubscribed)
           WHERE schedule IN {of:Array(String)} GROUP BY schedule, recipient)`,
    { of },
  );
  const answers = new Map<string, Map<string, Answer>>();
  for (const { schedule, recipient, agreed, since_ms } of rows) {
    const answer = { since: since_ms === null ? undefined : new Date(since_ms), hasAgreed: agreed === 1 };
    answers.set(schedule, (answers.get(schedule) ?? new Map<string, Answer>()).set(recipient, answer));
  }
  return answers;
}
