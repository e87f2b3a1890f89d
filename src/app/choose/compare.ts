import { el, select } from '../parts/dom.ts';
import { isDay, storedDays } from '../state/ranges.ts';
import { type Choose, comparedDaysOf, comparisons, daysFrom, type State } from '../state/state.ts';
import { rangeText } from '../words/locale.ts';
import { text } from '../words/text.ts';

const own = 'own';

/** While a year is typed, it is another one after each digit. */
const isStored = ({ value, validity }: HTMLInputElement) => isDay(value) && validity.valid;

/** What the report is compared with: days before it that have a name, or others. Both ends are always in sight. */
export function compareField(choose: Choose, today: string) {
  let state: State | undefined;
  const onchange = () => state && choose({ compare: named(state) });
  const name = select(text.compare.names, { id: 'compare', onchange });
  const named = (now: State): State['compare'] =>
    comparisons.find((each) => each === name.value) ??
    comparedDaysOf(now, today) ??
    comparedDaysOf({ ...now, compare: 'previous_period' }, today) ??
    'none';
  const days = el('output', { class: 'days', for: 'compare' });
  // Days that cannot be compared do not stay there as if they were.
  const onblur = () => state && show(state);
  const first = el('input', {
    type: 'date',
    ...storedDays,
    onblur,
    'aria-label': text.compare.first,
    onchange: () => {
      if (state && isStored(first)) choose({ compare: daysFrom(first.value, state, today) });
    },
  });
  const last = el('input', {
    type: 'date',
    ...storedDays,
    onblur,
    'aria-label': text.compare.last,
    onchange: () => {
      const [start, end] = [first.value, last.value];
      if (isStored(first) && isStored(last) && start <= end) choose({ compare: { start, end } });
    },
  });
  const others = el('span', { class: 'others' }, first, '–', last);
  const element = el(
    'div',
    { class: 'field compare' },
    el('label', { for: 'compare' }, text.compare.label),
    name,
    days,
    others,
  );
  const show = (now: State) => {
    state = now;
    const isOwn = typeof now.compare === 'object';
    const compared = comparedDaysOf(now, today);
    name.value = typeof now.compare === 'object' ? own : now.compare;
    days.hidden = isOwn;
    days.textContent = compared ? rangeText(compared.start, compared.end) : '';
    others.hidden = !isOwn;
    first.value = compared?.start ?? '';
    last.value = compared?.end ?? '';
    last.min = first.value;
    // By day, week or month as many days are compared, so that the first one says which.
    last.disabled = now.grain !== 'total';
  };
  return { element, show };
}
