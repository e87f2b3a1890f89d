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

/** The filters that hold, each to be taken off, and a menu to add others. */
export class Filters {
  readonly element = el('div', { class: 'filters' });
  private readonly rows: Rows;
  private readonly choose: Choose;
  private readonly request: (state: State, field: string) => ReportRequest;
  private readonly onEnd: () => void;
  private readonly chips = el('ul', { class: 'chips', 'aria-label': text.filters.label });
  private readonly field: HTMLSelectElement;
  private readonly find: HTMLInputElement;
  private readonly list = el('div', { class: 'values', role: 'group', 'aria-label': text.filters.values });
  private readonly opened;
  private readonly said = el('p', { class: 'hint', role: 'status' });
  /** The menu, which stands beside the other choices. */
  readonly details: HTMLDetailsElement;
  private boxes = new Map<string, HTMLInputElement>();
  /** The field and the values that have boxes. */
  private shown = '';
  /** The report that they are of. */
  private about = '';
  private turn = 0;
  private state: State | undefined;

  /**
   * @param request of a report that has the values of a field, unfiltered
   * @param onEnd called when the service takes the key no more
   */
  constructor(
    rows: Rows,
    choose: Choose,
    request: (state: State, field: string) => ReportRequest,
    onEnd: () => void,
  ) {
    this.rows = rows;
    this.choose = choose;
    this.request = request;
    this.onEnd = onEnd;
    const refresh = () => void this.refresh();
    this.field = el('select', { id: 'filter-field', onchange: refresh });
    this.find = el('input', { id: 'filter-find', type: 'search', autocomplete: 'off', oninput: refresh });
    this.details = menu(
      text.filters.add,
      el(
        'div',
        {},
        el('label', { for: 'filter-field' }, text.filters.field, this.field),
        el('label', { for: 'filter-find' }, text.filters.find, this.find),
        this.list,
        this.said,
        el('p', { class: 'hint' }, text.filters.hint),
      ),
      'filter',
    );
    this.details.addEventListener('toggle', refresh);
    this.opened = openedBar(choose);
    this.element.append(this.chips, this.opened.element);
  }

  show(state: State): void {
    this.state = state;
    this.opened.show(state);
    const fields = textFields(state.family, dimensionsOf(state.family));
    if ([...this.field.options].map(({ value }) => value).join() !== fields.join()) {
      this.field.replaceChildren(...fields.map((id) => el('option', { value: id }, columnLabel(id))));
    }
    const chips = Object.entries(state.filters).flatMap(([field, values]) =>
      values.map((value) => {
        const name = value === '' ? text.filters.empty : value;
        const label = text.filters.remove(columnLabel(field), name);
        const off = button('×', () => this.toggle(field, value), { 'aria-label': label });
        const shown = el('bdi', { title: name }, name);
        return el('li', {}, el('span', { class: 'field' }, columnLabel(field)), shown, off);
      }),
    );
    const clear = button(text.filters.clear, () => this.choose({ filters: {} }), { class: 'quiet' });
    const isOnChip = this.chips.contains(document.activeElement);
    refill(this.chips, ...chips, chips.length > 1 && el('li', { class: 'clear' }, clear));
    this.element.hidden = chips.length === 0;
    if (isOnChip && chips.length === 0) this.details.querySelector('summary')?.focus();
  }

  /** Adds the value, or takes it off. */
  toggle(field: string, value: string): void {
    if (!this.state) return;
    const { filters, family } = this.state;
    const now = filters[field] ?? [];
    const values = now.includes(value) ? now.filter((other) => other !== value) : [...now, value];
    const all = { ...filters, [field]: values };
    this.choose({
      filters: Object.fromEntries(
        textFields(family, dimensionsOf(family)).flatMap((id) => (all[id]?.length ? [[id, all[id]]] : [])),
      ),
    });
  }

  /** Lists the values again, if the menu is open: those of the rows, and those that the filter has. */
  async refresh(): Promise<void> {
    const turn = ++this.turn;
    if (!this.details.open || !this.state) return;
    const column = this.field.value;
    const find = this.find.value;
    const request = this.request(this.state, column);
    const about = JSON.stringify(request);
    if (about !== this.about) {
      this.about = about;
      this.shown = '';
      this.list.replaceChildren();
      this.said.textContent = '';
    }
    const answer = await this.rows.call('values', { request, column, find, most: listed + 1 });
    if ('failure' in answer && answer.failure.reason === 'unauthorized') return this.onEnd();
    // Other days or another field were chosen, or more was typed, meanwhile.
    if (turn !== this.turn) return;
    const found = 'result' in answer ? answer.result : [];
    const chosen = this.state.filters[column] ?? [];
    const values = [...new Set(found.slice(0, listed).concat(find ? [] : chosen))];
    const boxes = [column, ...values].join('\n');
    if (boxes !== this.shown) {
      this.shown = boxes;
      this.boxes = new Map(values.map((value) => [value, this.box(column, value)]));
      this.list.replaceChildren(
        ...[...this.boxes].map(([value, box]) =>
          el('label', {}, box, el('bdi', {}, value === '' ? text.filters.empty : value)),
        ),
      );
    }
    for (const [value, box] of this.boxes) box.checked = chosen.includes(value);
    this.said.textContent =
      'failure' in answer
        ? failureText(answer.failure)
        : values.length === 0
          ? text.filters.none
          : found.length > listed
            ? text.filters.more(listed)
            : '';
  }

  private box(column: string, value: string): HTMLInputElement {
    return el('input', { type: 'checkbox', onchange: () => this.toggle(column, value) });
  }
}
