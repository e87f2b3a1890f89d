import { partOf } from '../state/fields.ts';
import type { State } from '../state/state.ts';
import { text } from './text.ts';

/** How people call a column. */
export function columnLabel(column: string, grain?: State['grain']): string {
  if (column === 'start_time' && (grain === 'week' || grain === 'month')) {
    return text.columns.first_day ?? column;
  }
  const { metric, part } = partOf(column);
  const name = text.columns[metric] ?? metric;
  if (part === 'compared') return text.compared(name);
  return part === 'change' ? text.change(name) : name;
}
