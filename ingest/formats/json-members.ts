import { quoted } from '../../clickhouse/quoted.ts';
import { matches } from '../event/sql.ts';
import { jsonIn } from '../input/text.ts';

/** A number is a place in a list. The first part of a path is a name: a record is no list. */
const isPlace = (part: string, n: number) => n > 0 && /^[0-9]{1,9}$/.test(part);

/** Names in `a.b.0.c` that lead to a value, one in the other. None where there is no dot. */
function pathOf(name: string): readonly string[] {
  const path = name.split('.');
  return path.length === 1 || path.includes('') ? [] : path;
}

export function waysTo(name: string): string[][] {
  const path = pathOf(name).filter((part, n) => !isPlace(part, n));
  return [[name], ...(path.length > 0 ? [path] : [])];
}

/** Names of the members of a record, also of objects in it, as a mapping calls them. */
export function namesIn(record: string): string[] {
  const names = (value: unknown, before: string): string[] =>
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? Object.entries(value)
          // A path would look for such a name in a list.
          .filter(([name]) => before === '' || !isPlace(name, 1))
          .flatMap(([name, inner]) => [`${before}${name}`, ...names(inner, `${before}${name}.`)])
      : [];
  return names(jsonIn(record), '');
}

/** Members that are read because of what is in them. */
export function headsOf(columns: readonly string[]): string[] {
  return columns.flatMap((name) => pathOf(name).slice(0, 1));
}

/** A column of a record, whose number among the columns is n. */
export class Member {
  readonly name: string;
  readonly #path: readonly string[];
  readonly #n: number;
  /** Its place among the keys of the record, 0 where it has no such key. */
  readonly #at: string;

  constructor(name: string, n: number) {
    this.name = name;
    this.#path = pathOf(name);
    this.#n = n;
    this.#at = `at_${n}`;
  }

  /** SQL of its text, where `computed` was. */
  get text(): string {
    return this.#path.length === 0 ? this.#own : `text_${this.#n}`;
  }

  get #own(): string {
    return `texts[${this.#at}]`;
  }

  /** What a path leads to, computed once. A key that is called like the path comes before it. */
  get computed(): string[] {
    if (this.#path.length === 0) return [];
    const lists = this.#path.flatMap((part, n) =>
      isPlace(part, n) ? [`JSONType(record, ${argumentsOf(this.#path.slice(0, n))}) != 'Array', '', `] : [],
    );
    const inner = `JSONExtract(record, ${argumentsOf(this.#path)}, 'String')`;
    return [`multiIf(${this.#at} > 0, ${this.#own}, ${lists.join('')}${inner}) AS ${this.text}`];
  }

  /** A function of the record and of where in it the member is. */
  call(name: string): string {
    const own = `${name}(record, ${quoted(this.name)})`;
    if (this.#path.length === 0) return own;
    return `if(${this.#at} > 0, ${own}, ${name}(record, ${argumentsOf(this.#path)}))`;
  }

  /** The digits of a number as they are written, of the first that has such a name. */
  get digits(): string {
    const found = (name: string) => {
      const pattern = name.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&');
      return `extract(record, ${quoted(`"${pattern}"\\s*:\\s*(-?[0-9][0-9.eE+-]*)`)})`;
    };
    const inner = this.#path.at(-1);
    return inner === undefined
      ? found(this.name)
      : `if(${this.#at} > 0, ${found(this.name)}, ${found(inner)})`;
  }

  /** Whether it is a number that may have more digits than a double holds; as a double it would come out altered. Needs `computedIsLong`. */
  get isLong(): string {
    return `is_long_${this.#n}`;
  }

  /** SQL that computes `isLong`, once for each record. */
  get computedIsLong(): string {
    const { text } = this;
    // Most long texts are times and ids; JSONType would read the whole record for each of them.
    const manyDigits = `length(${text}) > 15 AND ${matches(text, '^-?[0-9][0-9.eE+-]*$')}`;
    // 999999999999.999999 is read as 1000000000000: as text a rounded number is short again.
    const large = `abs(toFloat64OrZero(${text})) >= 1000000000`;
    return `length(${text}) > 9 AND (${manyDigits} OR ${large}) AND ${this.call('JSONType')} = 'Double' AS ${this.isLong}`;
  }

  /** Whether the digits that were found are not those of the number, but of one of the same name elsewhere. */
  get losesDigits(): string {
    return `${this.isLong} AND toFloat64OrZero(${this.digits}) != ${this.call('JSONExtractFloat')}`;
  }
}

/** A place in a list is a number from 1 in SQL. */
function argumentsOf(path: readonly string[]): string {
  return path.map((part, n) => (isPlace(part, n) ? Number(part) + 1 : quoted(part))).join(', ');
}
