import type { ArrowRows } from '../arrow/arrow.ts';
import { type Column, DayColumn, NumberColumn, TextColumn } from '../arrow/columns.ts';
import { type Metric, partOf } from '../state/fields.ts';
import { dayText, locale } from '../words/locale.ts';
import { numbers } from './sums.ts';

export interface Arrangement {
  /** A column, absent: the order of the service. */
  readonly sort?: { readonly column: string; readonly descending: boolean };
  /** Rows that have this in a text that is shown, whatever its case. */
  readonly find: string;
  /** Columns of the table; some of them may not be there. */
  readonly shown: readonly string[];
}

/** The rows to show, in their order: at the end those that have no such ratio, because nothing was counted to divide by. */
export function arrange(
  rows: ArrowRows,
  { sort, find, shown }: Arrangement,
  metrics: readonly Metric[],
): Uint32Array {
  const found = matching(rows, find.trim().toLocaleLowerCase(locale), shown);
  const column = sort && rows.columns.find(({ id }) => id === sort.column);
  if (!column) return found;
  const ordered = sorted(found, column, sort.descending);
  const { metric, part } = partOf(column.id);
  const denominator = metrics.find(({ id }) => id === metric)?.ratio?.denominator;
  if (!denominator || part === 'change') return ordered;
  const counted = numbers(rows).get(part === 'compared' ? `${denominator}_compared` : denominator);
  const isThere = (row: number) => counted?.value(row) !== 0n;
  const there = ordered.filter(isThere);
  const others = ordered.filter((row) => !isThere(row));
  ordered.set(there);
  ordered.set(others, there.length);
  return ordered;
}

function matching(rows: ArrowRows, wanted: string, shown: readonly string[]): Uint32Array {
  const all = Uint32Array.from({ length: rows.rows }, (_, row) => row);
  if (wanted === '') return all;
  // Each text is looked at once, however many rows have it.
  const hits = rows.columns
    .filter((column) => shown.includes(column.id))
    .filter((column) => column instanceof TextColumn)
    .map((column) => {
      const seen = (text: string) => (column instanceof DayColumn ? `${text} ${dayText(text)}` : text);
      const has = (text: string) => seen(text).toLocaleLowerCase(locale).includes(wanted);
      return { codes: column.codes, hit: column.dictionary.texts.map(has) };
    });
  return all.filter((row) => hits.some(({ codes, hit }) => hit[codes[row] ?? 0]));
}

/** Equal rows stay in the order of the service, in both directions. */
function sorted(found: Uint32Array, column: Column, descending: boolean): Uint32Array {
  if (column instanceof TextColumn) return byRank(found, column, descending);
  if (!(column instanceof NumberColumn)) return found;
  // The rows were found in ascending order.
  const keys = new Float64Array((found.at(-1) ?? -1) + 1);
  let exact = true;
  for (const row of found) {
    const key = Number(column.value(row));
    keys[row] = key;
    exact &&= Math.abs(key) <= Number.MAX_SAFE_INTEGER;
  }
  const sign = descending ? -1 : 1;
  const compare = (a: number, b: number) => ((keys[a] ?? 0) - (keys[b] ?? 0)) * sign || a - b;
  const compareExactly = (a: number, b: number) => {
    const [x, y] = [column.value(a), column.value(b)];
    return x === y ? a - b : x < y ? -sign : sign;
  };
  return found.sort(exact ? compare : compareExactly);
}

/** Texts are compared once each; the rows are then counted into place. */
function byRank(found: Uint32Array, column: TextColumn, descending: boolean): Uint32Array {
  const { texts } = column.dictionary;
  const collator = new Intl.Collator(locale, { numeric: true });
  const order = [...texts.keys()].sort((a, b) => collator.compare(texts[a] ?? '', texts[b] ?? ''));
  if (descending) order.reverse();
  const rank = new Uint32Array(texts.length);
  for (const [place, code] of order.entries()) rank[code] = place;
  const starts = new Uint32Array(texts.length + 1);
  const rankOf = (row: number) => rank[column.codes[row] ?? 0] ?? 0;
  for (const row of found) starts[rankOf(row) + 1] = (starts[rankOf(row) + 1] ?? 0) + 1;
  for (let n = 1; n < starts.length; n++) starts[n] = (starts[n] ?? 0) + (starts[n - 1] ?? 0);
  const placed = new Uint32Array(found.length);
  for (const row of found) {
    const place = rankOf(row);
    const at = starts[place] ?? 0;
    placed[at] = row;
    starts[place] = at + 1;
  }
  return placed;
}
