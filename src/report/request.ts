import { z } from 'zod';

const day = z.iso.date({
  error: ({ input }) => (input === undefined ? 'is required' : 'must be a date that exists, as yyyy-mm-dd'),
});

/** The request body of every endpoint (contract §2.1); unknown fields are ignored. */
export const reportBody = z
  .object({ start_time: day, end_time: day })
  .refine(({ start_time, end_time }) => start_time <= end_time, {
    path: ['end_time'],
    error: 'must not be before start_time',
  });

/** First and last day of a report, inclusive, as `yyyy-mm-dd`. */
export interface DateRange {
  readonly start: string;
  readonly end: string;
}

/** The body is not what the contract asks for; `field` is the first field at fault, absent for the body itself. */
export class InvalidRequest extends Error {
  readonly field: string | undefined;

  constructor(field: string | undefined, reason: string) {
    super(field === undefined ? reason : `${field} ${reason}`);
    this.field = field;
  }
}

/** @throws {InvalidRequest} when the body is not JSON, not an object, or a date is missing, invalid or inverted */
export function parseRequest(body: string): DateRange {
  const { start_time, end_time } = parseBody(reportBody, body);
  return { start: start_time, end: end_time };
}

/** @throws {InvalidRequest} when the body is not JSON, not an object, or a field is missing or invalid */
export function parseBody<Fields>(schema: z.ZodType<Fields>, body: string): Fields {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    throw new InvalidRequest(undefined, 'the body is not valid JSON');
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const field = issue?.path[0];
  if (field === undefined) throw new InvalidRequest(undefined, 'the body must be a JSON object');
  throw new InvalidRequest(String(field), issue?.message ?? 'is invalid');
}
