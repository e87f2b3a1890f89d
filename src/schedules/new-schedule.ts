import { randomBytes } from 'node:crypto';
import * as z from 'zod';
import { endpoints } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { languageOf, languages } from '../app/words/languages.ts';
import { InvalidRequest } from '../report/invalid-request.ts';
import { RequestReader, withoutNulls } from '../report/request.ts';
import { daysOf, frequencies, periods, usualPeriod } from './due.ts';
import type { Schedule } from './schedules.ts';

const reports = new Map(
  endpoints(catalog)
    .filter(({ path }) => catalog.aliases[path] === undefined)
    .map(({ path, breakdown }) => [path.replace('/v1/', '').replace('/breakdowns', ''), breakdown]),
);
const names = [...reports.keys()];

const address = z
  .email('must be a mail address')
  .max(254, 'must be a mail address')
  // One recipient, however the address is written, has one answer.
  .toLowerCase()
  .meta({ description: 'recipients' });

const object = z.record(z.string(), z.unknown(), 'must be a JSON object');

/** What a new schedule is made of, whoever makes it. */
export const newSchedule = z.strictObject({
  report: z
    .enum(names, `must be one of ${names.join(', ')}`)
    .describe('as exports are named: campaigns/device_date'),
  to: z
    .array(address)
    .min(1, 'needs a recipient')
    .max(50, 'must be 50 recipients at most')
    .describe('recipients'),
  every: z
    .enum(frequencies, `must be one of ${frequencies.join(', ')}`)
    .describe('how often: every day, on Mondays, on the first of a month')
    .meta({ title: 'frequency' }),
  period: z
    .enum(periods, `must be one of ${periods.join(', ')}`)
    .optional()
    .describe('its days; the day, week or month before if absent'),
  at: z
    .string()
    .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be a time of day, such as 06:00')
    .default('06:00')
    .describe('when, in the time zone of the store')
    .meta({ title: 'hh:mm' }),
  attach: z
    .enum(['xlsx', 'csv'], 'must be xlsx or csv')
    .default('xlsx')
    .describe('the file of all rows')
    .meta({ title: 'format' }),
  wait: z
    .string()
    .regex(/^(\d{1,2}|1[0-5]\d|16[0-8])h$/, 'must be hours, from 0h to 168h')
    .default('24h')
    .describe('how long to wait until its days are confirmed; then the mail says that it is provisional')
    .meta({ title: 'hours' }),
  body: z
    .union([object, z.string().transform(parsed).pipe(object)], { error: 'must be a JSON object' })
    .default({})
    .describe('optional fields of the body of a report, as JSON: {"filters": {"device": ["mobile"]}}')
    .meta({ title: 'json' }),
  language: z
    .string()
    .refine(
      isLocale,
      `must be one of ${Object.keys(languages).join(', ')}, with a country if you like: de-CH`,
    )
    .default('en-GB')
    .describe('of the mail: en, de or ja; a country decides how it writes numbers and days')
    .meta({ title: 'language' }),
});

function parsed(json: string, context: z.RefinementCtx): unknown {
  try {
    return JSON.parse(json);
  } catch {
    context.addIssue({ code: 'custom', message: 'must be a JSON object' });
    return z.NEVER;
  }
}

function isLocale(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag)[0] === tag && languageOf(tag) !== undefined;
  } catch {
    return false;
  }
}

/** A new schedule. @throws {InvalidRequest} for a body that the report cannot have */
export function scheduleOf(
  { wait, every, period = usualPeriod[every], to, body: said, ...given }: z.output<typeof newSchedule>,
  of: Pick<Schedule, 'account' | 'madeBy'>,
): Omit<Schedule, 'token'> {
  const body = Object(withoutNulls(JSON.stringify(said, noneInfinite)));
  judgeBody(given.report, body, period);
  const since = new Date();
  const id = `${since.toISOString().slice(0, 19).replace(/\D/g, '')}${randomBytes(3).toString('hex')}`;
  const waitHours = Number.parseInt(wait, 10);
  return {
    id,
    ...of,
    ...given,
    body,
    every,
    period,
    to: [...new Set(to)],
    waitHours,
    state: 'active',
    since,
  };
}

/** As which 1e400 is read. JSON writes null for it, and a limit would be none. */
function noneInfinite(_field: string, value: unknown): unknown {
  if (value === Infinity || value === -Infinity)
    throw new InvalidRequest('body', 'must not have a number as large as 1e400');
  return value;
}

/** Characters, as an address has them: a link to the file may have 8,000. */
const mostOfFilters = 7_000;

/** @throws {InvalidRequest} for what is no field of a report, or no report of changing days can have */
function judgeBody(
  report: string,
  body: Readonly<Record<string, unknown>>,
  period: Schedule['period'],
): void {
  const breakdown = reports.get(report);
  if (!breakdown) throw new Error(`there is no report ${report}`);
  // It becomes the address of an export.
  if (JSON.stringify(body).length > 4_000)
    throw new InvalidRequest('body', 'must have 4000 characters at most');
  for (const field of ['start_time', 'end_time', 'changed_since']) {
    if (field in body) throw new InvalidRequest('body', `must not have ${field}: the period says the days`);
  }
  if ('as_of' in body)
    throw new InvalidRequest(
      'body',
      'must not have as_of: a mail has the figures of the day on which it is sent',
    );
  if (typeof body.compare_to === 'object') {
    throw new InvalidRequest('body', 'must name the days of compare_to, such as previous_period');
  }
  const { start, end } = daysOf(period, '2026-01-31');
  try {
    const fields = { ...body, start_time: start, end_time: end };
    const { filters = {} } = new RequestReader(catalog, breakdown).read(fields).options;
    const written = new URLSearchParams();
    for (const [field, values] of Object.entries(filters))
      for (const value of values) written.append(`filters.${field}`, value);
    if (String(written).length > mostOfFilters)
      throw new InvalidRequest(undefined, 'it has too many filters for the address of its file');
  } catch (error) {
    if (error instanceof InvalidRequest)
      throw new InvalidRequest('body', `is no body of this report: ${error.message}`);
    throw error;
  }
}
