import { metricsOf, partOf } from '../state/fields.ts';
import type { State } from '../state/state.ts';
import { countText } from './locale.ts';
import { text } from './text.ts';

/** The word for an id of the catalog. */
export const wordOf = (words: Readonly<Record<string, string>>, id: string): string => words[id] ?? id;

/** How people call a column. */
export function columnLabel(column: string, grain?: State['grain']): string {
  if (column === 'start_time' && (grain === 'week' || grain === 'month')) {
    return text.columns.first_day;
  }
  const { metric, part } = partOf(column);
  const name = wordOf(text.columns, metric);
  if (part === 'compared') return text.compared(name);
  return part === 'change' ? text.change(name) : name;
}

export const rowsText = (count: number): string =>
  count === 1 ? text.table.oneRow : text.table.rows(countText(count));

/** How people call a figure: of money with its currency, where that is known. */
export function figureLabel(family: string, id: string, currency?: string): string {
  const isMoney = metricsOf(family).some((metric) => metric.id === id && metric.money);
  return isMoney && currency ? `${columnLabel(id)} (${currency})` : columnLabel(id);
}
