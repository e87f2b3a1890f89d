import { familyOf } from '../../../catalog/breakdowns.ts';
import { catalog } from '../../../catalog/catalog.ts';
import { button, el } from '../parts/dom.ts';
import { failureText } from '../parts/notice.ts';
import { head, number, numberHead, scrolling, table } from '../parts/table.ts';
import { asked } from '../rows/asked.ts';
import type { Clock, Opened } from '../state/session.ts';
import { daysOf, type State } from '../state/state.ts';
import { columnLabel, figureLabel } from '../words/labels.ts';
import { countText, dayText, locale, momentText, rangeText } from '../words/locale.ts';
import { text } from '../words/text.ts';

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
export class Adjusted {
  readonly element = el('dialog', { class: 'explained', 'aria-label': text.closed.title });
  private readonly session: Opened;
  private turn = 0;

  constructor(session: Opened) {
    this.session = session;
  }

  async show(state: State, currency?: string): Promise<void> {
    const turn = ++this.turn;
    const { start, end } = daysOf(state, this.session.today);
    const said = el('p', { role: 'status' }, text.progress.asking);
    this.element.replaceChildren(
      el('h2', {}, text.closed.title),
      el('p', {}, rangeText(start, end)),
      said,
      button(text.explained.close, () => this.element.close()),
    );
    if (!this.element.open) this.element.showModal();
    const range = { start_time: start, end_time: end };
    const body = { ...range, filters: state.filters, limit: most, totals: true, by_load: true };
    const found = await asked<Adjustments>(`/v1/${state.family}/adjustments`, this.session, body);
    if (turn !== this.turn) return;
    if ('failure' in found) {
      said.textContent = failureText(found.failure);
      return;
    }
    const { rows, row_count = `${rows.length}` } = found.result;
    const [shown, all] = [countText(rows.length), countText(Number(row_count))];
    said.textContent =
      rows.length === 0
        ? text.closed.nothing
        : rows.length < Number(row_count)
          ? text.table.found(shown, all)
          : '';
    if (rows.length > 0)
      said.after(scrolling(tableOf(state.family, found.result, this.session.clock, currency)));
  }
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
