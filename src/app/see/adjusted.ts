import { familyOf } from '../../../catalog/breakdowns.ts';
import { catalog } from '../../../catalog/catalog.ts';
import { el } from '../parts/dom.ts';
import { head, number, numberHead, table } from '../parts/table.ts';
import { asked } from '../rows/asked.ts';
import type { Clock, Opened } from '../state/session.ts';
import { daysOf, type State } from '../state/state.ts';
import { columnLabel, figureLabel } from '../words/labels.ts';
import { countText, dayText, locale, momentText, rangeText } from '../words/locale.ts';
import { text } from '../words/text.ts';
import { answerDialog } from './answer-dialog.ts';

type Row = Readonly<Record<string, string>>;
type Words = Readonly<Record<string, string>>;

/** As the service writes it; figures as text. */
interface Adjustments {
  readonly rows: readonly Row[];
  readonly column_metadata: readonly { readonly id: string }[];
  readonly totals?: Row;
  readonly row_count?: string;
}

const most = 1_000;
const digits = new Intl.NumberFormat(locale, { maximumFractionDigits: 6, signDisplay: 'exceptZero' });

/** Shows what changed after the months of a range were closed. */
export function adjustedDialog(session: Opened) {
  const { element, show: ask } = answerDialog(text.closed.title);
  const show = (state: State, currency?: string) => {
    const { start, end } = daysOf(state, session.today);
    const range = { start_time: start, end_time: end };
    const body = { ...range, filters: state.filters, limit: most, totals: true, by_load: true };
    const asking = asked<Adjustments>(`/v1/${state.family}/adjustments`, session, body);
    return ask([rangeText(start, end)], asking, (found) => {
      const { rows, row_count = `${rows.length}` } = found;
      if (rows.length === 0) return [text.closed.nothing];
      const all = Number(row_count);
      const said = rows.length < all ? text.table.found(countText(rows.length), countText(all)) : '';
      return [said, tableOf(state.family, found, session.clock, currency)];
    });
  };
  return { element, show };
}

function tableOf(
  family: string,
  { rows, column_metadata, totals = {} }: Adjustments,
  clock?: Clock,
  currency?: string,
): HTMLTableElement {
  const figures = Object.keys(familyOf(catalog, family).measures);
  const texts = column_metadata
    .map(({ id }) => id)
    .filter((id) => id !== 'end_time' && !figures.includes(id));
  const numbers = (row: Row) => figures.map((id) => number(digits.format((row[id] ?? '0') as `${number}`)));
  const { columns, kinds }: { columns: Words; kinds: Words } = text.closed;
  const shown = (id: string, value = '') => {
    if (id === 'start_time') return dayText(value);
    if (id === 'changed_at') return value && momentText(Date.parse(value), clock);
    return id === 'change' ? kinds[value] : el('bdi', {}, value);
  };
  return table(
    { 'aria-label': text.closed.title },
    [
      [
        ...texts.map((id) => head(columns[id] ?? columnLabel(id))),
        ...figures.map((id) => numberHead(figureLabel(family, id, currency))),
      ],
    ],
    rows.map((row) => [...texts.map((id) => el('td', {}, shown(id, row[id]))), ...numbers(row)]),
    [el('th', { scope: 'row', colspan: texts.length }, text.table.total), ...numbers(totals)],
  );
}
