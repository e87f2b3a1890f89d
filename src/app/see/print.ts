import { el, named } from '../parts/dom.ts';
import { head, table } from '../parts/table.ts';
import type { Rows } from '../rows/client.ts';
import type { Arranged } from '../rows/protocol.ts';
import type { Session } from '../state/session.ts';
import { daysOf, type State } from '../state/state.ts';
import { columnLabel, rowsText } from '../words/labels.ts';
import { countText, rangeText } from '../words/locale.ts';
import { text } from '../words/text.ts';
import { shownColumns } from './table.ts';

/** More would be a book. */
const mostRows = 1000;
/** What is wider, px, browsers cut off: they make a sheet smaller by a third at most. */
const mostWidth = 1050;

/** Prints totals, chart and the first rows, which stand in a plain table for that time. */
export async function printRows(
  rows: Rows,
  { account, today }: Session,
  state: State,
  arranged: Arranged | undefined,
): Promise<void> {
  if (arranged) {
    const columns = shownColumns(state, arranged.columns);
    const { whole: cells, unconfirmed } = await rows.call('slice', { from: 0, to: mostRows, columns });
    const count = unconfirmed.length;
    const lines = unconfirmed.map((open, row) =>
      cells.map((column, n) => el('td', {}, `${column[row] ?? ''}${n === 0 && open ? ' *' : ''}`)),
    );
    const total = columns.map((id, n) =>
      el(n === 0 ? 'th' : 'td', {}, arranged.totals[id]?.whole ?? (n === 0 ? text.table.total : '')),
    );
    const heads = columns.map((id) => head(columnLabel(id, state.grain)));
    // The totals are a line like others: a foot would stand on each sheet.
    const printed = table({ class: 'printed' }, [heads], [...lines, total]);
    const { start, end } = daysOf(state, today);
    const told =
      count < arranged.rows
        ? text.table.printed(countText(count), countText(arranged.rows))
        : rowsText(count);
    const mark = unconfirmed.includes(true) ? ` * ${text.table.unconfirmed}` : '';
    const said = [account, rangeText(start, end), ...(state.closed ? [text.closed.names.closed] : []), told];
    printed.prepend(el('caption', {}, ...named(said), mark));
    printed.style.maxInlineSize = `${mostWidth}px`;
    document.body.append(printed);
    printed.style.zoom = String(Math.min(1, mostWidth / printed.offsetWidth));
    addEventListener('afterprint', () => printed.remove(), { once: true });
  }
  print();
}
