/** How the values of a column are read: as they are, by an expression, or not without an answer. */
export interface Shape {
  /** Absent: as they are. */
  readonly expression?: string;
  readonly reason?: string;
  /** What a person has to say before the column can be read. */
  readonly question?: string;
  /** What the question is about, if not the field itself. */
  readonly asks?: 'timezone';
  /** Dates are those of a sheet. */
  readonly dates?: 'excel';
}

interface DateShape {
  readonly pattern: RegExp;
  readonly shape: (column: string, values: readonly string[]) => Shape;
}

const parsedBy =
  (format: string) =>
  (column: string): Shape => ({
    expression: `toDate(parseDateTimeOrNull({${column}}, '${format}'))`,
    reason: `days are written as ${format}`,
  });

const dateShapes: readonly DateShape[] = [
  { pattern: /^\d{4}-\d{2}-\d{2}$/, shape: () => ({}) },
  { pattern: /^\d{4}-\d{2}-\d{2}[T ]\d{1,2}:\d{2}\S* ?(Z|[+-]\d{2}:?\d{2})$/, shape: () => ({}) },
  {
    pattern: /^\d{4}-\d{2}-\d{2}[T ]\d{1,2}:\d{2}(:\d{2}([.,]\d{1,9})?)?$/,
    shape: (column, [value]) => ({
      asks: 'timezone',
      question: `times such as ${value} in ${column} name no zone: give it by --timezone, such as UTC`,
    }),
  },
  { pattern: /^\d{10}(\.\d+)?$|^\d{13}$/, shape: () => ({ reason: 'seconds or milliseconds since 1970' }) },
  {
    pattern: /^\d{4}\/\d{2}\/\d{2}$/,
    shape: (column) => ({ expression: `replaceAll({${column}}, '/', '-')`, reason: 'days have slashes' }),
  },
  { pattern: /^\d{8}$/, shape: parsedBy('%Y%m%d') },
  { pattern: /^\d{2}\.\d{2}\.\d{4}$/, shape: parsedBy('%d.%m.%Y') },
  { pattern: /^[A-Z][a-z]{2} \d{2}, \d{4}$/, shape: parsedBy('%b %d, %Y') },
  { pattern: /^\d{2} [A-Z][a-z]{2} \d{4}$/, shape: parsedBy('%d %b %Y') },
  { pattern: /^\d{1,2}[/-]\d{1,2}[/-]\d{4}$/, shape: dayOrMonthFirst },
  { pattern: /^[34]\d{4}(\.\d+)?$/, shape: () => ({ dates: 'excel', reason: 'serial dates of a sheet' }) },
];

function dayOrMonthFirst(column: string, values: readonly string[]): Shape {
  const parts = values.map((value) => value.split(/[/-]/).map(Number));
  const slash = values[0]?.includes('/') ? '/' : '-';
  // %c and %e take one digit or two.
  const [dayFirst, monthFirst] = [`%e${slash}%c${slash}%Y`, `%c${slash}%e${slash}%Y`];
  const isDay = (n: number) => parts.some((part) => (part[n] ?? 0) > 12);
  if (isDay(0) !== isDay(1)) return parsedBy(isDay(0) ? dayFirst : monthFirst)(column);
  return {
    question: `${values[0]} in ${column} may be day or month first: as an expression, toDate(parseDateTimeOrNull({${column}}, '${dayFirst}')) or '${monthFirst}'`,
  };
}

/** How the days or times among these values are written, and the values that are none; undefined where most are none. */
export function dateShape(
  column: string,
  values: readonly string[],
): (Shape & { readonly others: readonly string[] }) | undefined {
  for (const { pattern, shape } of dateShapes) {
    const dates = values.filter((value) => pattern.test(value));
    if (dates.length * 2 <= values.length) continue;
    const others = [...new Set(values.filter((value) => !pattern.test(value)))];
    return { ...shape(column, dates), others };
  }
  return undefined;
}

/** Why it is unknown how the days or times among these values are written. */
export function unknownDates(column: string, values: readonly string[]): string {
  const unknown = values.filter((value) => !dateShapes.some(({ pattern }) => pattern.test(value)));
  if (unknown.length === 0)
    return `${column} is written in several ways, and in none of them more often than in all others`;
  return `${column} is written in an unknown way in ${unknown.length} of the first ${values.length} records, such as ${JSON.stringify(unknown[0])}`;
}

/** Whether most of these values are numbers, with signs of a currency or without. */
export function areNumbers(values: readonly string[]): boolean {
  const given = values.filter((value) => value !== '');
  return given.filter((value) => /^[^\d%]{0,4}\d[\d.,' ]*[^\d%]{0,4}$/.test(value)).length * 2 > given.length;
}

/** How a column of counts or of money is written. */
export function numberShape(column: string, kind: 'count' | 'money', values: readonly string[]): Shape {
  const given = values.filter((value) => /\d/.test(value));
  const name = `{${column}}`;
  if (kind === 'money' && /micro/i.test(column))
    return { expression: `${name} / 1000000`, reason: 'millionths' };
  const signed = given.find((value) => /[^\d.,\s-]/.test(value));
  const bare = given.map((value) => value.replace(/[^\d.,-]/g, ''));
  const commas = bare.filter((value) => value.includes(','));
  const dotThousands = bare.find((value) => /^-?\d{1,3}(\.\d{3})+$/.test(value));
  let text = signed === undefined ? name : `replaceRegexpAll(${name}, '[^0-9.-]', '')`;
  let reason = signed === undefined ? '' : `${signed} has a sign; `;
  const fraction = commas.find((value) => /,\d*$/.test(value) && !/^-?\d{1,3}(,\d{3})+$/.test(value));
  if (fraction !== undefined) {
    text = `replaceOne(replaceRegexpAll(${name}, '[^0-9,-]', ''), ',', '.')`;
    reason += `${fraction} has a decimal comma`;
  } else if (commas.length > 0) {
    const sure = kind === 'count' || bare.some((value) => /\.\d+$/.test(value));
    if (!sure)
      return {
        question: `${commas[0]} in ${column} may be thousands or a decimal comma: as an expression, replaceAll(${name}, ',', '') or replaceOne(${name}, ',', '.')`,
      };
    if (signed === undefined) text = `replaceAll(${name}, ',', '')`;
    reason += `${commas[0]} has a comma between thousands`;
  } else if (kind === 'count' && dotThousands !== undefined) {
    return {
      question: `${dotThousands} in ${column} may be thousands or a fraction: as an expression, replaceAll(${name}, '.', '') or round(${name})`,
    };
  }
  const places = bare.find((value) => /\.\d*[1-9]/.test(value)) ?? fraction;
  if (kind === 'count' && places !== undefined) {
    const rounded = text === name ? `round(${name})` : `round(toDecimal64OrNull(${text}, 6))`;
    return { expression: rounded, reason: `${reason}${reason && '; '}${places} is no whole number` };
  }
  return text === name ? {} : { expression: text, reason: reason.replace(/; $/, '') };
}
