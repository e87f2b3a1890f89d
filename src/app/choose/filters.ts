import { button, el, menu, refill } from '../parts/dom.ts';
import { failureText } from '../parts/notice.ts';
import type { Rows } from '../rows/client.ts';
import type { ReportRequest } from '../rows/protocol.ts';
import { dimensionsOf, textFields } from '../state/fields.ts';
import type { Choose, State } from '../state/state.ts';
import { columnLabel } from '../words/labels.ts';
import { text } from '../words/text.ts';
import { openedBar } from './opened.ts';

const listed = 100;

/**
 * The filters that hold, each to be taken off, and a menu to add others, which stands beside the other choices.
 * @param request of a report that has the values of a field, unfiltered
 * @param onEnd called when the service takes the key no more
 */
export function filtersOf(
  rows: Rows,
  choose: Choose,
  request: (state: State, field: string) => ReportRequest,
  onEnd: () => void,
) {
  const onchange = () => void refresh();
  const field = el('select', { id: 'filter-field', onchange });
  const find = el('input', { id: 'filter-find', type: 'search', autocomplete: 'off', oninput: onchange });
  const list = el('div', { class: 'values', role: 'group', 'aria-label': text.filters.values });
  const said = el('p', { class: 'hint', role: 'status' });
  const details = menu(
    text.filters.add,
    el(
      'div',
      {},
      el('label', { for: 'filter-field' }, text.filters.field, field),
      el('label', { for: 'filter-find' }, text.filters.find, find),
      list,
      said,
      el('p', { class: 'hint' }, text.filters.hint),
    ),
    'filter',
  );
  details.addEventListener('toggle', onchange);
  const chips = el('ul', { class: 'chips', 'aria-label': text.filters.label });
  const opened = openedBar(choose);
  const element = el('div', { class: 'filters' }, chips, opened.element);
  let boxes = new Map<string, HTMLInputElement>();
  /** The field and the values that have boxes. */
  let shown = '';
  /** The report that they are of. */
  let about = '';
  let turn = 0;
  let state: State | undefined;

  const show = (now: State) => {
    state = now;
    opened.show(now);
    const fields = textFields(now.family, dimensionsOf(now.family));
    if ([...field.options].map(({ value }) => value).join() !== fields.join()) {
      field.replaceChildren(...fields.map((id) => el('option', { value: id }, columnLabel(id))));
    }
    const items = Object.entries(now.filters).flatMap(([of, values]) =>
      values.map((value) => {
        const name = value === '' ? text.filters.empty : value;
        const label = text.filters.remove(columnLabel(of), name);
        const off = button('×', () => toggle(of, value), { 'aria-label': label });
        const chip = el('bdi', { title: name }, name);
        return el('li', {}, el('span', { class: 'field' }, columnLabel(of)), chip, off);
      }),
    );
    const clear = button(text.filters.clear, () => choose({ filters: {} }), { class: 'quiet' });
    const isOnChip = chips.contains(document.activeElement);
    refill(chips, ...items, items.length > 1 && el('li', { class: 'clear' }, clear));
    element.hidden = items.length === 0;
    if (isOnChip && items.length === 0) details.querySelector('summary')?.focus();
  };

  /** Adds the value, or takes it off. */
  const toggle = (of: string, value: string) => {
    if (!state) return;
    const { filters, family } = state;
    const before = filters[of] ?? [];
    const values = before.includes(value) ? before.filter((other) => other !== value) : [...before, value];
    const all = { ...filters, [of]: values };
    choose({
      filters: Object.fromEntries(
        textFields(family, dimensionsOf(family)).flatMap((id) => (all[id]?.length ? [[id, all[id]]] : [])),
      ),
    });
  };

  /** Lists the values again, if the menu is open: those of the rows, and those that the filter has. */
  const refresh = async () => {
    const asked = ++turn;
    if (!details.open || !state) return;
    const column = field.value;
    const wanted = find.value;
    const report = request(state, column);
    if (JSON.stringify(report) !== about) {
      about = JSON.stringify(report);
      shown = '';
      list.replaceChildren();
      said.textContent = '';
    }
    const asking = { request: report, column, find: wanted, most: listed + 1 };
    const answer = await rows.call('values', asking);
    if ('failure' in answer && answer.failure.reason === 'unauthorized') return onEnd();
    // Other days or another field were chosen, or more was typed, meanwhile.
    if (asked !== turn) return;
    const found = 'result' in answer ? answer.result : [];
    const chosen = state.filters[column] ?? [];
    const values = [...new Set(found.slice(0, listed).concat(wanted ? [] : chosen))];
    if ([column, ...values].join('\n') !== shown) {
      shown = [column, ...values].join('\n');
      const box = (value: string) => el('input', { type: 'checkbox', onchange: () => toggle(column, value) });
      boxes = new Map(values.map((value) => [value, box(value)]));
      list.replaceChildren(
        ...[...boxes].map(([value, box]) =>
          el('label', {}, box, el('bdi', {}, value === '' ? text.filters.empty : value)),
        ),
      );
    }
    for (const [value, box] of boxes) box.checked = chosen.includes(value);
    said.textContent =
      'failure' in answer
        ? failureText(answer.failure)
        : values.length === 0
          ? text.filters.none
          : found.length > listed
            ? text.filters.more(listed)
            : '';
  };
  return { element, details, show, toggle, refresh };
}
