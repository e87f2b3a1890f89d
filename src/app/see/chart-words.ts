import { el, named } from '../parts/dom.ts';
import { head, table } from '../parts/table.ts';
import type { ChartPoint, Facts } from '../rows/protocol.ts';
import { isPart } from '../state/ranges.ts';
import type { State } from '../state/state.ts';
import { rangeText } from '../words/locale.ts';
import { text } from '../words/text.ts';
import { changed } from './bars.ts';

/** Whether money of these days may still change. */
export function isOpen({ start, end }: ChartPoint, facts: Facts): boolean {
  return facts.unconfirmed.some(([first, last]) => start <= last && end >= first);
}

/** What there is to say of a point: its days, its figure, and that of the other period. */
export function said(point: ChartPoint | undefined, grain: State['grain']): string[] {
  if (!point) return [];
  const { now, before } = point;
  return [
    when(point, grain),
    now?.text ?? text.chart.noFigures,
    ...(before ? [`${text.chart.before}: ${before.text}`] : []),
  ];
}

function when(point: ChartPoint, grain: State['grain']): string {
  const days = rangeText(point.start, point.end);
  return grain !== 'total' && isPart(point, grain) ? `${days} (${text.chart.part[grain]})` : days;
}

/** The points of which something was counted, as a table. */
export function asTable(
  name: string,
  points: readonly ChartPoint[],
  grain: State['grain'],
  facts: Facts,
): HTMLElement {
  const dated = grain !== 'total';
  const compared = points.some(({ before }) => before);
  const titles = [dated ? text.chart.when : text.chart.what, name, ...(compared ? [text.chart.before] : [])];
  const isRanked = points.some(({ change }) => change);
  const rows = points
    .filter(({ now, before }) => now ?? before)
    .map((point) => {
      const { now, before, change } = point;
      const open = dated && isOpen(point, facts) && ` (${text.chart.unconfirmed})`;
      return [
        el('th', { scope: 'row' }, ...(dated ? [when(point, grain), open] : named(point.labels))),
        el('td', { title: now?.whole }, now?.text ?? text.chart.noFigures),
        compared && el('td', { title: before?.whole }, before?.text ?? text.chart.noFigures),
        isRanked && el('td', { title: change?.whole }, changed(change)),
      ];
    });
  return table({}, [[...titles, ...(isRanked ? [text.change(name)] : [])].map(head)], rows);
}

/** What lines and bars stand for, where there is more than one kind of them. */
export function legend(
  points: readonly ChartPoint[],
  facts: Facts | undefined,
  grain: State['grain'],
): HTMLElement[] {
  const key = (name: string, label: string) => el('span', { class: `key ${name}` }, label);
  const compared = points.some(({ before }) => before);
  const part = grain !== 'total' && points.some((point) => point.now && isPart(point, grain));
  const open = facts && points.some((point) => isOpen(point, facts));
  return [
    ...(compared
      ? [key('now', text.chart.now), key(facts ? 'before' : 'before solid', text.chart.before)]
      : []),
    ...(part ? [key('part', text.chart.part[grain])] : []),
    ...(open ? [key('open', text.chart.unconfirmed)] : []),
  ];
}
