import type { Shape } from './shape.ts';

/** What a file shows to stand before parts of a unit; absent where no number of it tells, or several tell different things. */
export type DecimalSign = ',' | '.' | undefined;

/** A sign of a currency or its code. */
const currency = String.raw`(?:[A-Z]{0,3}\p{Sc}|[A-Z]{3})`;
const number = new RegExp(
  String.raw`^-?(${currency})?\p{Z}?-?(\d(?:[\d.,'’\p{Z}]*\d)?)\p{Z}?(${currency})?$`,
  'u',
);
/** Amounts and percentages with this sign: versions and lists of numbers have other places, or more of it. */
const withSign = (sign: string, between: string) =>
  new RegExp(
    String.raw`^-?(?:${currency}\p{Z}?)?-?\d+(?:[${between}]\d{3})*[${sign}](?:\d{2}\p{Z}?(?:${currency})?|\d{1,2}\p{Z}?%)$`,
    'u',
  );
const withPoint = withSign('.', ',');
const withComma = withSign(',', ".'’\\p{Z}");

/** Numbers of one file are written in one way. */
export function decimalSignOf(rows: readonly (readonly string[])[]): DecimalSign {
  const some = (pattern: RegExp) => rows.some((row) => row.some((cell) => pattern.test(cell)));
  const [point, comma] = [some(withPoint), some(withComma)];
  return point === comma ? undefined : point ? '.' : ',';
}

/** Cells that say that there is no number. */
const isNone = (value: string) => /^\p{Z}*(?:[-–—]+|n\/?a|nan|null|none|\(?not set\)?)\p{Z}*$/iu.test(value);

/** Whether most of these values are numbers, with signs of a currency or without. */
export function areNumbers(values: readonly string[]): boolean {
  const given = values.filter((value) => value !== '' && !isNone(value));
  return (
    given.filter((value) => /^[^\d%]{0,4}\d[\d.,'’\p{Z}]*[^\d%]{0,4}$/u.test(value)).length * 2 > given.length
  );
}

export interface NumberShape extends Shape {
  /** Without the comma as decimal sign, most of these numbers would be read as other amounts. */
  readonly decimalComma?: true;
  /** The column with 0 in the cells that say that there is no number; absent where there are none. */
  readonly orZero?: string;
}

/**
 * How a column of counts or of money is written, in parts of a unit or in thousands of it. What is written in another way
 * stays as it is, so the judge rejects it.
 * @param sign of the whole file
 */
export function numberShape(
  column: string,
  kind: 'count' | 'money',
  values: readonly string[],
  sign: DecimalSign,
): NumberShape {
  const parts = kind === 'money' ? partsOfUnit(column) : undefined;
  if (!parts && !severalUnits.test(column)) return writtenShape(column, kind, values, sign);
  // Thousands of a count have fractions.
  const { expression, question } = writtenShape(column, 'money', values, sign);
  const amount = expression === undefined ? `{${column}}` : `toDecimal128OrNull(${expression}, 6)`;
  if (parts && question === undefined)
    return { expression: `${amount} / ${parts.each}`, reason: parts.words };
  if (parts)
    return { question: `${question}; divide it by ${parts.each}, as the column is in ${parts.words}` };
  const shown = kind === 'count' ? `round(${amount} * 1000)` : `${amount} * 1000`;
  const several = `numbers in ${column} may be thousands or millions: as an expression, such as ${shown}`;
  return { question: question === undefined ? several : `${several}; ${question}` };
}

function writtenShape(
  column: string,
  kind: 'count' | 'money',
  values: readonly string[],
  sign: DecimalSign,
): NumberShape {
  const given = values.filter((value) => /\d/.test(value));
  const none = [...new Set(values.filter(isNone))];
  const quoted = none.map((value) => `'${value}'`).join(', ');
  const name = none.length === 0 ? `{${column}}` : `if({${column}} IN (${quoted}), '0', {${column}})`;
  const found = given.flatMap((value) => {
    const [, before, digits = '', after] = number.exec(value) ?? [];
    return digits === ''
      ? []
      : [{ value, digits, currencies: [before, after].filter((each) => each !== undefined) }];
  });
  if (found.length * 2 <= given.length && given.length > 0) {
    const odd = given.find((value) => !number.test(value));
    return { question: `${odd} in ${column} is no plain number: read it by an expression` };
  }
  const currencies = [...new Set(found.flatMap((each) => each.currencies))];
  if (currencies.length > 1)
    return {
      question: `${column} has several currencies, ${currencies.join(' and ')}, which no report tells apart: read it by an expression, or load one of them by --where`,
    };
  const decimals = decimalsOf(
    column,
    name,
    kind,
    found.map(({ digits }) => digits.replace(/\p{Z}/gu, '')),
    sign,
  );
  if ('question' in decimals) return decimals;
  const { comma, thousands, example, fraction } = decimals;
  const [unit] = currencies;
  const away = [
    ...(unit === undefined ? [] : [unit.replace(/[$]/g, '[$]')]),
    ...(found.some(({ value }) => /\p{Z}/u.test(value)) ? ['\\p{Z}'] : []),
    ...(thousands === ''
      ? []
      : [`${thousands.length > 1 || thousands === '.' ? `[${thousands}]` : thousands}([0-9]{3})\\\\b`]),
  ];
  // A separator that is not followed by three digits stays: it separates something else.
  const kept = thousands === '' ? '' : '\\1';
  let text = away.length === 0 ? name : `replaceRegexpAll(${name}, '${away.join('|')}', '${kept}')`;
  if (comma) text = `replaceOne(${text}, ',', '.')`;
  const signed = found.find((each) => each.currencies.length > 0)?.value;
  const why = [
    ...(none.length === 0 ? [] : [`cells ${quoted} are no numbers, and read as 0`]),
    ...(signed === undefined ? [] : [`${signed} has a sign`]),
    ...(example === undefined ? [] : [example]),
    ...(kind === 'count' && fraction !== undefined ? [`${fraction} is no whole number`] : []),
  ].join('; ');
  if (kind === 'count' && fraction !== undefined)
    text = text === `{${column}}` ? `round(${text})` : `round(toDecimal64OrNull(${text}, 6))`;
  return {
    ...(text !== `{${column}}` && { expression: text, reason: why }),
    ...(comma && { decimalComma: true }),
    ...(none.length > 0 && { orZero: name }),
  };
}

/** Names of columns whose numbers are thousands or millions: `Impressions (000)`, `Cost (k EUR)`. */
const severalUnits = /(?<![\d.,])000s?\b|(?:thousand|million)(?!th)|\b(?:tsd|mio)\b|\(k\b/i;

/** Money that is not in units, by the name of its column. */
function partsOfUnit(column: string): { readonly each: number; readonly words: string } | undefined {
  if (/micros?(?![a-z])|millionths?/i.test(column) || /[a-z]Micros?(?![a-z])|^micros?[A-Z_]/.test(column))
    return { each: 1_000_000, words: 'millionths' };
  if (/(?:^|[^a-z])cents?(?![a-z])/i.test(column) || /[a-z]Cents?(?![a-z])/.test(column))
    return { each: 100, words: 'hundredths' };
  return undefined;
}

interface Decimals {
  readonly comma: boolean;
  /** What stands between thousands, of those that are no blanks. */
  readonly thousands: string;
  /** Words about a value that shows it. */
  readonly example?: string;
  /** A value that is no whole number. */
  readonly fraction?: string;
}

function decimalsOf(
  column: string,
  name: string,
  kind: 'count' | 'money',
  numbers: readonly string[],
  sign: DecimalSign,
): Decimals | { readonly question: string } {
  const apostrophe = numbers.find((each) => /['’]/.test(each));
  const others = [...new Set(numbers.flatMap((each) => each.match(/['’]/g) ?? []))]
    .join('')
    .replace("'", "\\'");
  const [commas, points] = [',', '.'].map((each) => numbers.filter((value) => value.includes(each))) as [
    string[],
    string[],
  ];
  const grouped = (by: string) => new RegExp(`^[1-9]\\d{0,2}(\\${by}\\d{3})+$`);
  const inPairs = commas.find((value) => /,\d\d,/.test(value));
  if (inPairs !== undefined)
    return {
      question: `${inPairs} in ${column} has groups of two digits: as an expression, replaceAll(${name}, ',', '')`,
    };
  // A comma before another sign stands between thousands.
  const isPoint = sign === '.' || commas.some((value) => /,.*[.,]/.test(value));
  const fraction = isPoint
    ? undefined
    : commas.find((value) => /^[^,]*,\d*$/.test(value) && !grouped(',').test(value));
  // What follows may have a point between thousands that these numbers are too small for.
  const isCommaFile =
    sign === ',' && !isPoint && (commas.length === 0 ? points.length === 0 : kind === 'money');
  if (fraction !== undefined || isCommaFile) {
    const shown = fraction ?? commas[0];
    return {
      comma: true,
      thousands: `.${others}`,
      example: shown === undefined ? 'the file has decimal commas' : `${shown} has a decimal comma`,
      ...(fraction !== undefined && { fraction }),
    };
  }
  const places = points.find((value) => /\.\d*[1-9]/.test(value));
  if (commas.length > 0) {
    const sure = isPoint || (sign === undefined && kind === 'count') || points.length > 0;
    if (!sure)
      return {
        question: `${commas[0]} in ${column} may be thousands or a decimal comma: as an expression, replaceAll(${name}, ',', '') or replaceOne(${name}, ',', '.')`,
      };
    return {
      comma: false,
      thousands: `,${others}`,
      example: `${commas[0]} has a comma between thousands`,
      ...(places !== undefined && { fraction: places }),
    };
  }
  const inGroups = points.filter((value) => grouped('.').test(value));
  const areGroups =
    inGroups.some((value) => /\..*\./.test(value)) || (sign === ',' && inGroups.length === points.length);
  if (points.length > 0 && areGroups)
    return { comma: true, thousands: `.${others}`, example: `${inGroups[0]} has a point between thousands` };
  // Of money, other numbers than from 1 to 999 with three places each tell that there are no thousands.
  const mayBeGroups =
    kind === 'count'
      ? inGroups.length > 0
      : sign === undefined &&
        inGroups.length > 0 &&
        numbers.every((value) =>
          grouped('.').test(value) ? !value.startsWith('0') : /^\d{1,3}$/.test(value),
        );
  if (mayBeGroups)
    return {
      question: `${inGroups[0]} in ${column} may be thousands or a fraction: as an expression, replaceAll(${name}, '.', '') or ${kind === 'count' ? `round(${name})` : name}`,
    };
  return {
    comma: false,
    thousands: others,
    ...(apostrophe !== undefined && { example: `${apostrophe} has an apostrophe between thousands` }),
    ...(places !== undefined && { fraction: places }),
  };
}
