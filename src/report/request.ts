import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import { type Breakdown, familyOf } from '../../catalog/breakdowns.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { microsecondsOf } from './changed-since.ts';
import { type DateRange, daysIn, periodsBefore } from './days.ts';
import { comparisonsOf, dimensionsRead } from './fields.ts';
import { InvalidRequest, parsedJson } from './invalid-request.ts';
import { nearMiss } from './near-miss.ts';
import { closePattern, inOrder, inverted, optionFields, rangeFields } from './option-schema.ts';
import type { ReportOptions } from './options.ts';
import { everyDay } from './plan.ts';

/** What a caller asks of an endpoint. */
export interface ReportRequest {
  readonly range: DateRange;
  readonly options: ReportOptions;
  /** The dimensions of the rollup that can answer it: those of the breakdown, and those it is filtered by. */
  readonly reads: readonly string[];
}

/** The request body of a breakdown with its optional fields; unknown fields are ignored, unless they look mistyped. */
export function requestSchema(catalog: Catalog, breakdown: Breakdown) {
  const comparison = comparisonsOf(familyOf(catalog, breakdown.family).columns);
  return z
    .object({
      ...rangeFields,
      ...optionFields(catalog, breakdown),
    })
    .describe(
      'A range of days, and what else is asked for. Unknown fields are ignored; one that is nearly the name of an optional field is refused. A field that is `null` is not given.',
    )
    .refine(inOrder, { ...inverted, abort: true })
    .superRefine(({ order_by = [], compare_to, changed_since, time_grain, as_of, ...days }, { addIssue }) => {
      const refuse = (message: string, ...path: (string | number)[]) =>
        addIssue({ code: 'custom', path, message });
      if (changed_since !== undefined && as_of !== undefined)
        refuse('does not go with changed_since: days of then stay', 'as_of');
      if (changed_since !== undefined && (compare_to || (time_grain && time_grain !== 'day')))
        refuse(
          'goes neither with compare_to nor with weeks and months: days that did not change would be missing',
          'changed_since',
        );
      const n = order_by.findIndex(({ field }) => comparison.includes(field));
      if (n >= 0 && compare_to === undefined) refuse('needs compare_to', 'order_by', n, 'field');
      if (compare_to === undefined) return;
      const range = rangeOf(days);
      const compared = comparedRange(range, compare_to);
      if (!compared) refuse('would begin before the year 0', 'compare_to');
      else if (breakdown.day && !isStorable(range))
        refuse(`by date needs a range from ${everyDay.first} to ${everyDay.last}`, 'compare_to');
      else if (breakdown.day && typeof compare_to === 'object' && daysIn(compared) !== daysIn(range))
        refuse(
          `must have ${daysIn(range)} days like the range: this breakdown compares day by day`,
          'compare_to',
        );
    });
}

export type RequestSchema = ReturnType<typeof requestSchema>;
type RequestFields = z.infer<RequestSchema>;

const schemas = new WeakMap<Breakdown, RequestSchema>();

/** The same, made once and when it is first needed: zod takes some 20 ms and a megabyte for one. */
function schemaOf(catalog: Catalog, breakdown: Breakdown): RequestSchema {
  const schema = schemas.get(breakdown) ?? requestSchema(catalog, breakdown);
  schemas.set(breakdown, schema);
  return schema;
}

/** For each endpoint: so many bodies, of so many characters at most. */
const remembered = { max: 200, length: 500 };

/** How an endpoint reads its requests; what a body asks for is kept beside its text. */
export class RequestReader {
  readonly #catalog: Catalog;
  readonly #breakdown: Breakdown;
  readonly #known = new LRUCache<string, ReportRequest>({ max: remembered.max });

  constructor(catalog: Catalog, breakdown: Breakdown) {
    this.#catalog = catalog;
    this.#breakdown = breakdown;
  }

  /** @throws {InvalidRequest} when the body is not JSON, or as `read` does */
  parse(body: string): ReportRequest {
    const known = this.#known.get(body);
    if (known) return known;
    const request = this.read(withoutNulls(body));
    if (body.length <= remembered.length) this.#known.set(body, request);
    return request;
  }

  /**
   * @throws {InvalidRequest} when it is not an object, a date is missing, a field that is known has a wrong value, or one
   * that is unknown looks like a mistyped one: without its filter a report would have the figures of others
   * @param others names of fields that are not of the report
   */
  read(fields: unknown, others: readonly string[] = []): ReportRequest {
    const schema = schemaOf(this.#catalog, this.#breakdown);
    refuseMistyped([...Object.keys(schema.shape), ...others], fields);
    const data = check(schema, fields);
    const range = rangeOf(data);
    const options = optionsOf(data, range);
    return { range, options, reads: dimensionsRead(this.#catalog, this.#breakdown, options.filters ?? {}) };
  }
}

/** @throws {InvalidRequest} when the body is not JSON, not an object, or a field is missing or invalid */
export function parseBody<Fields>(schema: z.ZodType<Fields>, body: string): Fields {
  return check(schema, withoutNulls(body));
}

/** What a body of JSON has: a field that is null is not given. @throws {InvalidRequest} when it is not JSON */
export const withoutNulls = (body: string): unknown => parsedJson(body, (_, value) => value ?? undefined);

function refuseMistyped(names: readonly string[], fields: unknown): void {
  // Texts and lists have keys, too: a body may have as many as characters.
  if (typeof fields !== 'object' || Array.isArray(fields)) return;
  const meant = nearMiss(names.filter((name) => !required.includes(name)));
  for (const given of Object.keys(Object(fields))) {
    const name = names.includes(given) ? undefined : meant(given);
    if (name) throw new InvalidRequest(given.slice(0, 100), `is no field of a report: did you mean ${name}?`);
  }
}

const required: readonly string[] = ['start_time', 'end_time'];

function check<Fields>(schema: z.ZodType<Fields>, fields: unknown): Fields {
  const parsed = schema.safeParse(fields);
  if (parsed.success) return parsed.data;
  throw invalid(parsed.error.issues[0]);
}

function invalid(issue: z.core.$ZodIssue | undefined): InvalidRequest {
  if (issue?.code === 'invalid_union') {
    const nested = issue.errors.at(-1)?.[0];
    if (nested) return invalid({ ...nested, path: [...issue.path, ...nested.path] });
  }
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  const path = [...(issue?.path ?? []), ...unknown];
  if (path.length === 0) return new InvalidRequest(undefined, 'the body must be a JSON object');
  return new InvalidRequest(path.map(String).join('.'), issue?.message ?? 'is invalid');
}

/** Whether ClickHouse can count other days to those of the range. */
const isStorable = ({ start, end }: DateRange) => start >= everyDay.first && end <= everyDay.last;

export const rangeOf = ({ start_time, end_time }: { start_time: string; end_time: string }): DateRange => ({
  start: start_time,
  end: end_time,
});

function comparedRange(range: DateRange, asked: RequestFields['compare_to']): DateRange | undefined {
  if (asked === undefined) return undefined;
  return typeof asked === 'string' ? periodsBefore[asked](range) : rangeOf(asked);
}

/** The same text for requests that mean the same, as far as that is easily told. */
export function optionsOf(fields: RequestFields, range: DateRange): ReportOptions {
  const {
    filters = {},
    metrics,
    order_by = [],
    limit,
    totals,
    ids,
    time_grain,
    changed_since,
    as_of,
  } = fields;
  const filtered = Object.entries(filters).flatMap(([field, values]) =>
    values ? [[field, [...new Set(values)].sort()] as const] : [],
  );
  const compared = comparedRange(range, fields.compare_to);
  return {
    ...(filtered.length > 0 && { filters: Object.fromEntries(filtered) }),
    ...(metrics && { metrics }),
    ...(order_by.length > 0 && {
      order_by: order_by.map(({ field, direction = 'asc' }) => ({ field, direction })),
    }),
    ...(limit !== undefined && { limit }),
    ...(totals && { totals }),
    ...(ids && { ids }),
    ...(time_grain && time_grain !== 'day' && { time_grain }),
    ...(changed_since !== undefined && { changed_since: microsecondsOf(changed_since) }),
    ...(as_of !== undefined && (closePattern.test(as_of) ? { as_of } : { moment: microsecondsOf(as_of) })),
    ...(compared && { compare_to: compared }),
  };
}
