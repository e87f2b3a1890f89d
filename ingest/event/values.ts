import { eventTypes, type FieldKind, type FieldSpec } from '../../catalog/events.ts';
import { quoted } from '../../clickhouse/quoted.ts';
import { optionHint } from '../input/option-hint.ts';
import { anyNumber, firstOf, hasMorePlaces, matches } from './sql.ts';

/** What a value and its rules refer to; computed once for each record, in a layer of its own. */
export interface Computed {
  readonly name: string;
  readonly sql: string;
}

/** What a field of a record comes to: a value of its column, and what can be wrong with the text it was read from. */
export interface Reading {
  readonly computed?: readonly Computed[];
  /** A SQL expression of the column's type; of a faulty text it may be any value, and never throws. */
  readonly value: string;
  /** SQL condition under which the record has a value. */
  readonly given: string;
  /** In this order; the first that is broken is reported. */
  readonly rules: readonly Rule[];
}

export interface Rule {
  /** SQL condition under which the rule is broken. */
  readonly broken: string;
  /** Said after the name of the field. */
  readonly reason: string;
  /** SQL of the text that is shown behind it; absent: that of the field. */
  readonly shown?: string;
}

export interface ReadingOptions {
  /** IANA zone of the report day. */
  readonly reportTimezone: string;
  /** IANA zone of times that name none. */
  readonly timezone: string;
  /** How numbers among times are read that are serial dates of a sheet; absent: there are none. */
  readonly dates?: SheetDates | undefined;
  /** Amounts with more than six decimal places are rounded, half away from zero. */
  readonly roundMoney: boolean;
}

/**
 * The serial date of 1970-01-01. Excel and Google Sheets count from 1900, with a 29 February in that year, which was none; Excel
 * for Mac counted from 1904. A Date32 begins in 1900, so no day before it can be what is counted from.
 */
const serialOf1970 = { excel: 25_569, 'excel-1904': 24_107 } as const;
export type SheetDates = keyof typeof serialOf1970;
export const sheetDates = Object.keys(serialOf1970) as readonly SheetDates[];

// ClickHouse takes the year 0000 for this year.
const date = '[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])';
const clock = '([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.,][0-9]{1,9})?)?';
const offset = '(Z|[+-][01][0-9](:?[0-5][0-9])?)';
const timePattern = `^${date}[T ]${clock} ?${offset}?$`;
const datePattern = `^${date}$`;
const secondsPattern = '^[0-9]{9,10}(\\.[0-9]{1,9})?$';
const millisecondsPattern = '^[0-9]{12,13}$';
/** Days, and what of a day has passed: five digits are from 1927 to 2177. */
const serialPattern = '^[0-9]{5}([.,][0-9]{1,17})?$';
/** 12 digits before the point, 6 after it; more places only if they are zeros. */
const plainMoney = '^-?[0-9]{1,12}(\\.[0-9]{1,6}0*)?$';

/** A rule for a value that may be NULL. NULL breaks no rule. */
export const ofValue = (broken: string, reason: string): Rule => ({
  broken: `ifNull(${broken}, false)`,
  reason,
});

export const moneyReason = 'must be a decimal number with at most 12 digits before the point';
/** The beginning of why an amount is rejected that rounding mends. */
export const tooManyPlaces = 'has more than 6 decimal places';
const placesReason = `${tooManyPlaces}${optionHint('round_money', 'rounds it', true)}`;
export const truthReason = 'must be true or false';
const timeReason = `must be a date-time such as 2026-01-31T12:00:00.000Z, 2026-01-31 12:00:00+02:00 or 2026-01-31 12:00:00, a day such as 2026-01-31, or seconds or milliseconds since 1970${optionHint('dates', 'reads serial dates', 'excel')}`;

/** Reads the text of a field; `text` is a SQL expression of type String, empty where the record has no text. */
export function readText(spec: FieldSpec, text: string, options: ReadingOptions): Reading {
  return { given: `(${text} != '')`, ...valueOfText(spec, text, options) };
}

const noValue: Readonly<Record<FieldKind, string>> = {
  text: "''",
  type: "''",
  time: "toDateTime64(0, 3, 'UTC')",
  count: 'toUInt64(0)',
  money: 'toDecimal64(0, 6)',
  flag: 'false',
};

/** A field that no record of the file has: half of the statement would be about the four counts, for nothing. */
export function readNothing({ kind }: FieldSpec): Reading {
  return { value: noValue[kind], given: '0', rules: [] };
}

/** All of a reading but whether there is a value. */
export type Value = Omit<Reading, 'given'>;

function valueOfText(
  { kind, maxChars = 128, range }: FieldSpec,
  text: string,
  options: ReadingOptions,
): Value {
  switch (kind) {
    case 'text':
      return {
        value: text,
        rules: [
          { broken: `lengthUTF8(${text}) > ${maxChars}`, reason: `must be at most ${maxChars} characters` },
        ],
      };
    case 'time':
      return timeOf(text, options);
    case 'type':
      return {
        value: text,
        rules: [
          {
            broken: `${text} NOT IN (${['', ...eventTypes].map(quoted).join(', ')})`,
            reason: `must be one of ${eventTypes.join(', ')}`,
          },
        ],
      };
    case 'count':
      return countOf(text, range);
    case 'money':
      return moneyOf(text, options.roundMoney);
    case 'flag':
      return {
        value: `lower(${text}) IN ('true', '1')`,
        rules: [{ broken: `lower(${text}) NOT IN ('', 'true', 'false', '1', '0')`, reason: truthReason }],
      };
  }
}

/** Whether a text is a day, which is one of the report. */
export const isDay = (text: string): string => matches(text, datePattern);

/** A whole number is a day, as a date without a time is; one with a fraction is a time in the zone of those that name none. */
function serialTime(text: string, dates: SheetDates, { reportTimezone, timezone }: ReadingOptions): string {
  const day = `addDays(toDate32('1970-01-01'), toInt32OrZero(extract(${text}, '^[0-9]+')) - ${serialOf1970[dates]})`;
  const midnight = (zone: string) => `toDateTime64(${day}, 3, ${quoted(zone)})`;
  // By the clock on the wall: on a day of 23 hours half a day is noon, too.
  const passed = `toUInt64(round(toDecimal128OrZero(concat('0.', extract(${text}, '[.,]([0-9]+)$')), 17) * 86400000))`;
  const wall = `formatDateTime(addMilliseconds(${midnight('UTC')}, ${passed}), '%F %T.%f')`;
  const time = `parseDateTime64BestEffortOrNull(${wall}, 3, ${quoted(timezone)})`;
  return `if(match(${text}, '[.,]'), toTimeZone(${time}, 'UTC'), toTimeZone(${midnight(reportTimezone)}, 'UTC'))`;
}

function timeOf(text: string, options: ReadingOptions): Value {
  const { reportTimezone, timezone, dates } = options;
  const parsed = (value: string) => `parseDateTime64BestEffortOrNull(${value}, 3, ${quoted(timezone)})`;
  const time = firstOf(
    [
      [matches(text, timePattern), `toTimeZone(${parsed(`replaceOne(${text}, ',', '.')`)}, 'UTC')`],
      // Midnight of the day, or the first moment after it where the clock jumps over midnight.
      [
        isDay(text),
        `if(isNull(parseDateTime64BestEffortOrNull(concat(${text}, 'T00:00:00Z'), 3, 'UTC')), NULL,
            toTimeZone(toDateTime64(toDate32OrNull(${text}), 3, ${quoted(reportTimezone)}), 'UTC'))`,
      ],
      ...(dates ? [[matches(text, serialPattern), serialTime(text, dates, options)] as const] : []),
      [matches(text, secondsPattern), `toDateTime64(toDecimal64OrNull(${text}, 3), 3, 'UTC')`],
      [matches(text, millisecondsPattern), `fromUnixTimestamp64Milli(toInt64OrZero(${text}), 'UTC')`],
    ],
    'NULL',
  );
  const looksRight = [timePattern, datePattern].map((pattern) => matches(text, pattern)).join(' OR ');
  const value = `value_of_${text}`;
  return {
    computed: [{ name: value, sql: time }],
    value: `ifNull(${value}, toDateTime64(0, 3, 'UTC'))`,
    rules: [
      { broken: `isNull(${value}) AND (${looksRight})`, reason: 'must be a day that exists' },
      { broken: `isNull(${value}) AND ${text} != '' AND NOT (${looksRight})`, reason: timeReason },
      timeRange(value),
    ],
  };
}

/** Before 1971 it is a missing value or a mistaken unit; after 2149-06-04 no Date of the store can be the day. */
export function timeRange(time: string): Rule {
  const broken = `${time} < toDateTime64('1971-01-01 00:00:00', 3, 'UTC') OR ${time} >= toDateTime64('2149-06-05 00:00:00', 3, 'UTC')`;
  return ofValue(broken, 'must be between 1971 and 2149');
}

/**
 * What a number comes to. One that is not written plainly takes many times as long to read, and is read once.
 * @param unusual what such a one comes to, of its `text` and `number`, which is NULL where the text is no number
 */
function numberIn(text: string, plain: string, value: string, unusual: string): Computed {
  const number = `if(${matches(text, anyNumber)}, toDecimal256OrNull(${text}, 38), NULL)`;
  const slow = `arrayMap((text, number) -> ${unusual}, [${text}], [${number}])[1]`;
  return { name: `number_of_${text}`, sql: `if(${text} = '' OR ${plain}, ${value}, ${slow})` };
}

/** As a pair, its value and which rule it breaks: 0 for none. */
function moneyOf(text: string, round: boolean): Value {
  const small = 'ifNull(abs(round(number, 6)) < 1000000000000, false)';
  const number = numberIn(
    text,
    matches(text, plainMoney),
    `(toDecimal64OrZero(${text}, 6), 0)`,
    `(toDecimal64(assumeNotNull(if(${small}, round(number, 6), 0)), 6), multiIf(NOT ${small}, 1, ${hasMorePlaces('text', 'number', 6)}, 2, 0))`,
  );
  const breaks = (rule: number) => `tupleElement(${number.name}, 2) = ${rule}`;
  return {
    computed: [number],
    value: `tupleElement(${number.name}, 1)`,
    rules: [
      { broken: breaks(1), reason: moneyReason },
      ...(round ? [] : [{ broken: breaks(2), reason: placesReason }]),
    ],
  };
}

type Range = FieldSpec['range'];

export function countReason([min, max]: NonNullable<Range>): string {
  return `must be a whole number from ${min} to ${max}`;
}

/** Digits that are within the range whatever they are. */
function plainCount([min, max]: NonNullable<Range>): string {
  const digits = String(max + 1).length - 1;
  return min === 0 ? `^[0-9]{1,${digits}}$` : `^[1-9][0-9]{0,${digits - 1}}$`;
}

/** What is computed is NULL where the text is no whole number of the range: for a pair ClickHouse had a third more functions to analyse. */
function countOf(text: string, range: Range = [0, 0]): Value {
  const [min, max] = range;
  const isWhole = `number BETWEEN ${min} AND ${max} AND NOT ${hasMorePlaces('text', 'number', 0)}`;
  const number = numberIn(
    text,
    matches(text, plainCount(range)),
    `toUInt64OrZero(${text})`,
    `if(${isWhole}, accurateCastOrNull(number, 'UInt64'), NULL)`,
  );
  return {
    computed: [number],
    value: `ifNull(${number.name}, 0)`,
    rules: [{ broken: `isNull(${number.name})`, reason: countReason(range) }],
  };
}
