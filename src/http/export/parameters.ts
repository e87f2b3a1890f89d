import { InvalidRequest } from '../../report/invalid-request.ts';
import { nearMiss } from '../../report/near-miss.ts';

/** A parameter that is given at most once: the value of the field of the body, and the text of that value. */
interface Single {
  /** How it is written where that is not as in the body, in OpenAPI. */
  readonly written?: string;
  readonly example?: string;
  readonly read: (text: string) => unknown;
  /** Absent: as it is. */
  readonly write?: (value: unknown) => string;
}

const text: Single = { read: (given) => given };
// A value that is no number stays text, and the schema of the field refuses it.
const wholeNumber: Single = {
  read: (given) => (/^\d{1,15}$/.test(given) ? Number(given) : given),
};
const flag: Single = {
  read: (given) => (given === 'true' ? true : given === 'false' ? false : given),
};
const names: Single = {
  written: 'In an address: with commas.',
  example: 'referrals,impressions',
  read: (given) => given.split(','),
  write: (value) => listOf(value).join(','),
};
/** `-spent,campaign`: descending with a minus, as sorting is written in many addresses. */
const order: Single = {
  written: 'In an address: with commas, and a minus for descending.',
  example: '-impressions,start_time',
  read: (given) =>
    given
      .split(',')
      .map((name) => (name.startsWith('-') ? { field: name.slice(1), direction: 'desc' } : { field: name })),
  write: (value) =>
    listOf(value)
      .map((each) => `${partOf(each, 'direction') === 'desc' ? '-' : ''}${partOf(each, 'field')}`)
      .join(','),
};
/** The name of a period, or an interval of days as ISO 8601 writes it. */
const period: Single = {
  written: 'In an address two dates have a slash between them.',
  example: '2026-08-31/2026-09-30',
  read: (given) => {
    const [start_time, end_time, ...more] = given.split('/');
    return end_time === undefined || more.length > 0 ? given : { start_time, end_time };
  },
  write: (value) =>
    typeof value === 'string' ? value : `${partOf(value, 'start_time')}/${partOf(value, 'end_time')}`,
};

/** By field of the body. */
export const parameters: Readonly<Record<string, Single>> = {
  start_time: text,
  end_time: text,
  metrics: names,
  order_by: order,
  limit: wholeNumber,
  totals: flag,
  ids: flag,
  time_grain: text,
  changed_since: { ...text, example: '2026-10-02T08:00:00Z' },
  as_of: { ...text, example: 'closed' },
  compare_to: period,
};

/** nginx takes 8 KiB of a request's first line by itself. */
export const longestAddress = 8_000;

/** The parameters of an address. @throws {InvalidRequest} when they are not UTF-8: read as such they would have other names */
export function parametersIn({ search, searchParams }: URL): URLSearchParams {
  try {
    // A percent sign that begins no escape stands for itself.
    decodeURIComponent(search.replace(/%(?![\da-f]{2})/gi, '%25'));
  } catch {
    throw new InvalidRequest(undefined, 'the parameters are not UTF-8');
  }
  return searchParams;
}

/** `filters.device=mobile`; brackets would have to be quoted in shells, and are patterns to curl. */
const filter = /^filters\.(.+)$/;

/**
 * The fields of a report's body as an address writes them. In a body fields that nobody knows are ignored; here they
 * are refused, because an address is typed by hand, and a mistyped one would give other numbers.
 * @throws {InvalidRequest} for a parameter that is unknown or repeated; values are judged later, with the body's schema
 */
export function fieldsOf(given: URLSearchParams): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  const filters = new Map<string, string[]>();
  for (const [name, text] of given) {
    const [, filtered] = filter.exec(name) ?? [];
    if (filtered !== undefined) {
      // A value may hold any character, so that several are several parameters.
      const values = filters.get(filtered);
      if (values) values.push(text);
      else filters.set(filtered, [text]);
      continue;
    }
    const known = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
    if (!known) {
      const near = nearMiss(['filters', ...Object.keys(parameters)])(name);
      const hint = near ? `: did you mean ${near === 'filters' ? 'filters.FIELD' : near}?` : '';
      throw new InvalidRequest(name.slice(0, 100), `is no parameter of an export${hint}`);
    }
    if (Object.hasOwn(fields, name)) throw new InvalidRequest(name, 'is given more than once');
    fields[name] = known.read(text);
  }
  return { ...fields, ...(filters.size > 0 && { filters: Object.fromEntries(filters) }) };
}

/** The parameters that say the same as the fields of a valid body; fields that no report knows are left out. */
export function parametersOf(fields: Readonly<Record<string, unknown>>): URLSearchParams {
  const written = new URLSearchParams();
  for (const [name, { write = String }] of Object.entries(parameters)) {
    // A field that is null is not given.
    const value = fields[name] ?? undefined;
    if (value !== undefined && !(Array.isArray(value) && value.length === 0)) written.set(name, write(value));
  }
  for (const [name, values] of Object.entries(fields.filters ?? {})) {
    for (const value of listOf(values)) written.append(`filters.${name}`, String(value));
  }
  return written;
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

function partOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
