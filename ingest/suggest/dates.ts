import type { Shape } from './shape.ts';

/** One way to write days or times. */
interface Writing {
  /** As parseDateTime of the engine has it; of a day and a month as numbers, which come in either order, `?/?`. */
  readonly format: string;
  readonly clock: boolean;
  /** The judge reads it as it is, but for a zone by name. */
  readonly plain: boolean;
  /** The zone, with the blank before it: ` PST`, `Z`, `+02:00`. */
  readonly zone: string;
}

const month = '(?:0[1-9]|1[0-2])';
const dayOfMonth = '(?:0[1-9]|[12]\\d|3[01])';
const name = '[A-Z][a-z]{2,8}';

/** Days, with what parseDateTime calls them: %e and %c take one digit or two. */
const dayWritings: readonly (readonly [pattern: RegExp, format: (day: string) => string])[] = [
  [/^\d{4}-\d{2}-\d{2}/, () => '%Y-%m-%d'],
  [/^\d{4}\/\d{2}\/\d{2}/, () => '%Y/%m/%d'],
  [/^\d{1,2}\.\d{1,2}\.\d{4}(?!\d)/, () => '%e.%c.%Y'],
  [/^\d{1,2}\.\d{1,2}\.\d{2}(?!\d)/, () => '%e.%c.%y'],
  [/^\d{1,2}[/-]\d{1,2}[/-]\d{4}(?!\d)/, (day) => (day.includes('/') ? '?/?/%Y' : '?-?-%Y')],
  [/^\d{1,2}\/\d{1,2}\/\d{2}(?!\d)/, () => '?/?/%y'],
  [
    new RegExp(`^${name} \\d{1,2}, ?\\d{4}`),
    (day) => `${monthName(day)} %e,${day.includes(', ') ? ' ' : ''}%Y`,
  ],
  [
    new RegExp(`^\\d{1,2}([ /-])${name}\\1\\d{4}`),
    (day) => ['%e', monthName(day), '%Y'].join(/[ /-]/.exec(day)?.[0]),
  ],
];

const monthName = (day: string) => (/[A-Za-z]{4}/.test(day) ? '%M' : '%b');

const digitsAlone = new RegExp(`^20\\d{2}${month}${dayOfMonth}(?:[01]\\d|2[0-3])?(?:[0-5]\\d){0,2}$`);
const clockBehind =
  /^(?<between>T|,? |[:-])(?<hour>\d{1,2}):\d{2}(?<second>:\d{2})?(?<fraction>[.,]\d{1,9})?(?<half> ?[AaPp][Mm])?(?<zone> ?(?:Z|[+-]\d{2}:?\d{2})| [A-Za-z][\w/]{1,40})?$/;

/** How a text is written that is a day or a time. */
function writingOf(text: string): Writing | undefined {
  if (digitsAlone.test(text)) {
    const format = ['%Y%m%d', '%H', '%i', '%s'].slice(0, text.length / 2 - 3).join('');
    return { format, clock: text.length > 8, plain: false, zone: '' };
  }
  for (const [pattern, format] of dayWritings) {
    const [day] = pattern.exec(text) ?? [];
    if (day === undefined) continue;
    const begin = format(day);
    const isIso = begin === '%Y-%m-%d';
    if (day === text) return { format: begin, clock: false, plain: isIso, zone: '' };
    const found = clockBehind.exec(text.slice(day.length))?.groups;
    if (!found) return undefined;
    const { between = '', second, fraction, half, zone = '' } = found;
    const hours = half === undefined ? '%k' : '%l';
    const end = half === undefined ? '' : `${half.startsWith(' ') ? ' ' : ''}%p`;
    const plain = isIso && /^[T ]$/.test(between) && half === undefined;
    // By a format the engine parses neither parts of seconds nor +02:00.
    if (!plain && (fraction !== undefined || zone.includes(':'))) return undefined;
    const all = `${begin}${between}${hours}:%i${second === undefined ? '' : ':%s'}${end}`;
    return { format: plain ? begin : all, clock: true, plain, zone };
  }
  return undefined;
}

/** Times and days as one number. Those since 1970 begin with 1 until 2033. */
const numbered: readonly (readonly [pattern: RegExp, shape: (column: string) => Shape])[] = [
  [/^1\d{9}(\.\d+)?$|^1\d{12}$/, () => ({ reason: 'seconds or milliseconds since 1970' })],
  [
    /^1\d{15}$|^1\d{18}$/,
    (column) => ({ expression: `left({${column}}, 13)`, reason: 'millionths or billionths of seconds' }),
  ],
  [/^[34]\d{4}(\.\d+)?$/, () => ({ dates: 'excel', reason: 'serial dates of a sheet' })],
];

/** Values that one shape reads, and that shape. */
interface Reading {
  readonly values: readonly string[];
  readonly shape: () => Shape;
}

function readingsOf(column: string, values: readonly string[]): Reading[] {
  const written = new Map<string, { readonly writing: Writing; readonly values: string[] }>();
  for (const value of values) {
    const writing = writingOf(value);
    if (!writing) continue;
    const { format, clock, zone } = writing;
    const key = `${format} ${clock} ${/[+-]\d/.test(zone) ? '%z' : zone.trim()}`;
    const group = written.get(key) ?? { writing, values: [] };
    group.values.push(value);
    written.set(key, group);
  }
  return [
    ...numbered.map(([pattern, shape]) => ({
      values: values.filter((value) => pattern.test(value)),
      shape: () => shape(column),
    })),
    ...[...written.values()].map((group) => ({
      values: group.values,
      shape: () => writtenShape(column, group.writing, group.values),
    })),
  ];
}

/** Whether days such as `01.09.26` may be of the year 2001: their ends differ as no years do, or their beginnings are one year. */
function mayBeginWithYear(values: readonly string[]): boolean {
  const parts = values.map((value) => /^(\d+)[./]\d+[./](\d+)/.exec(value) ?? []);
  const [begins, ends] = [1, 2].map((n) => new Set(parts.map((part) => part[n])));
  const [only = ''] = begins ?? [];
  return (ends?.size ?? 0) > 2 || (begins?.size === 1 && Number(only) >= 20);
}

function writtenShape(column: string, writing: Writing, values: readonly string[]): Shape {
  if (writing.format.includes('%y') && mayBeginWithYear(values))
    return { question: `${values[0]} in ${column} may begin or end with the year: read it by an expression` };
  if (!writing.format.startsWith('?')) return readBy(column, writing, writing.format, values);
  const parts = values.map((value) => value.split(/[/-]/).map((part) => Number.parseInt(part, 10)));
  const formats = ['%e-%c', '%c-%e'].map((order) =>
    writing.format.replace(/\?(.)\?/, (_, between) => order.replace('-', between)),
  );
  const isDay = (n: number) => parts.some((part) => (part[n] ?? 0) > 12);
  const [dayFirst = '', monthFirst = ''] = formats;
  if (isDay(0) !== isDay(1)) return readBy(column, writing, isDay(0) ? dayFirst : monthFirst, values);
  const { expression = '', asks } = readBy(column, writing, dayFirst, values);
  const zone = asks && ', with --timezone';
  return {
    question: `${values[0]} in ${column} may be day or month first: as an expression, ${expression} or '${monthFirst}'${zone ?? ''}`,
  };
}

/** What is read by a format, or as it is. */
function readBy(column: string, writing: Writing, format: string, [value]: readonly string[]): Shape {
  const { clock, plain, zone } = writing;
  const text = `{${column}}`;
  const isOffset = /^ ?(?:Z|[+-]\d{2}:?\d{2})$/.test(zone);
  const isUtc = /^ (?:UTC|GMT)$/.test(zone);
  const named = zone !== '' && !isOffset && !isUtc ? zone : '';
  const bare = named === '' ? text : `replaceOne(${text}, '${named}', '')`;
  const ask: Shape = {
    asks: 'timezone',
    question:
      named === ''
        ? `times such as ${value} in ${column} name no zone: give it by --timezone, such as UTC`
        : `the zone of times such as ${value} in ${column} has to be given by its IANA name: --timezone, such as America/Los_Angeles`,
  };
  if (plain) {
    if (!clock || isOffset) return {};
    if (isUtc) return { expression: `replaceOne(${text}, '${zone}', 'Z')`, reason: `times are in${zone}` };
    return named === '' ? ask : { ...ask, expression: bare };
  }
  const reason = `${clock ? 'times' : 'days'} are written as ${format}`;
  if (format === '%Y/%m/%d')
    return { expression: `replaceAll(${text}, '/', '-')`, reason: 'days have slashes' };
  if (!clock) return { expression: `toDate(parseDateTimeOrNull(${text}, '${format}'))`, reason };
  if (isUtc || isOffset) {
    const end = isUtc ? zone : zone.replace(/Z|[+-].*/, (end) => (end === 'Z' ? end : '%z'));
    return { expression: `parseDateTimeOrNull(${text}, '${format}${end}', 'UTC')`, reason };
  }
  // As text without a zone, which is then that of --timezone.
  return { ...ask, expression: `toString(parseDateTimeOrNull(${bare}, '${format}', 'UTC'))`, reason };
}

/** How the days or times among these values are written, and the values that are none; undefined where most are none. */
export function dateShape(
  column: string,
  values: readonly string[],
): (Shape & { readonly others: readonly string[] }) | undefined {
  const readings = readingsOf(column, values);
  const most = readings.find((reading) => reading.values.length * 2 > values.length);
  if (!most) return undefined;
  const read = new Set(readings.flatMap((reading) => reading.values));
  return { ...most.shape(), others: [...new Set(values.filter((value) => !read.has(value)))] };
}

/** Whether these are the first days of weeks or months: three or more, all on one weekday or one day of the month. */
export function areFirstDays(values: readonly string[]): boolean {
  const texts = [...new Set(values)].filter((text) => /\d/.test(text));
  const hasClock = texts.some((text) => /[1-9]/.test(/[T ](\d{1,2}(?::\d{2}){1,2})/.exec(text)?.[1] ?? ''));
  const mayBeYears = texts.some((text) => writingOf(text)?.format.includes('%y')) && mayBeginWithYear(texts);
  const days = hasClock || mayBeYears ? [] : daysOf(texts);
  const onOne = (part: (day: Date) => number) => new Set(days.map(part)).size === 1;
  return days.length >= 3 && (onOne((day) => day.getUTCDay()) || onOne((day) => day.getUTCDate()));
}

const numberedDay = /^(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})(?!\d).*/;

/** The days that texts begin with, but those that may be day or month first. */
function daysOf(texts: readonly string[]): Date[] {
  const isDay = (n: number) => texts.some((text) => Number(numberedDay.exec(text)?.[n]) > 12);
  const isDayFirst = isDay(1) || texts.some((text) => numberedDay.exec(text)?.[2] === '.');
  const order = isDayFirst ? '$3/$1/$4' : '$1/$3/$4';
  return texts
    .map((text) => text.replace(/^(\d{4})[-/]?(\d\d)[-/]?(\d\d)(?!\d).*/, '$1-$2-$3'))
    .map((text) => text.replace(numberedDay, isDayFirst === isDay(3) ? '' : order))
    .filter((text) => /[ /-]/.test(text))
    .map((text) => new Date(`${text} UTC`))
    .filter((day) => !Number.isNaN(day.getTime()));
}

/** Why it is unknown how the days or times among these values are written. */
export function unknownDates(column: string, values: readonly string[]): string {
  const read = new Set(readingsOf(column, values).flatMap((reading) => reading.values));
  const unknown = values.filter((value) => !read.has(value));
  if (unknown.length === 0)
    return `${column} is written in several ways, and in none of them more often than in all others`;
  return `${column} is written in an unknown way in ${unknown.length} of the first ${values.length} records, such as ${JSON.stringify(unknown[0])}`;
}
