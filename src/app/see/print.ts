import { el } from '../parts/dom.ts';
import type { Rows } from '../rows/client.ts';
import type { Arranged } from '../rows/protocol.ts';
import type { State } from '../state/state.ts';
import { columnLabel, rowsText } from '../words/labels.ts';
import { countText } from '../words/locale.ts';
import { text } from '../words/text.ts';
import { shownColumns } from './table.ts';

/** More would be a book. */
const mostRows = 1000;
/** What is wider, px, browsers cut off: they make a sheet smaller by a third at most. */
const mostWidth = 1050;

/** Prints totals, chart and the first rows, which stand in a plain table for that time. */
export async function printRows(rows: Rows, state: State, arranged: Arranged | undefined): Promise<void> {
  if (arranged) {
    const columns = shownColumns(state, arranged.columns);
    const { whole: cells, unconfirmed } = await rows.call('slice', { from: 0, to: mostRows, columns });
    const count = cells[0]?.length ?? 0;
    const table = el(
      'table',
      { class: 'printed' },
      el(
        'caption',
        {},
        count < arranged.rows
          ? text.table.printed(countText(count), countText(arranged.rows))
          : rowsText(count),
        unconfirmed.includes(true) ? ` * ${text.table.unconfirmed}` : '',
      ),
      el(
        'thead',
        {},
        el('tr', {}, ...columns.map((id) => el('th', { scope: 'col' }, columnLabel(id, state.grain)))),
      ),
      el(
        'tbody',
        {},
        ...Array.from({ length: count }, (_, row) =>
          el(
            'tr',
            {},
            ...cells.map((column, n) =>
              el('td', {}, `${column[row] ?? ''}${n === 0 && unconfirmed[row] ? ' *' : ''}`),
            ),
          ),
        ),
        el(
          'tr',
          { class: 'total' },
          ...columns.map((id, n) =>
            el(n === 0 ? 'th' : 'td', {}, arranged.totals[id]?.whole ?? (n === 0 ? text.table.total : '')),
          ),
        ),
      ),
    );
    table.style.maxInlineSize = `${mostWidth}px`;
    document.body.append(table);
    table.style.zoom = String(Math.min(1, mostWidth / table.offsetWidth));
    addEventListener('afterprint', () => table.remove(), { once: true });
  }
  print();
}
