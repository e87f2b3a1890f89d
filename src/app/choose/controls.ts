import { button, el, menu, segments, set } from '../parts/dom.ts';
import { dimensionsOf } from '../state/fields.ts';
import { isPreset, presets, storedDays } from '../state/ranges.ts';
import { type Choose, daysOf, type Grain, grains, type State } from '../state/state.ts';
import { wordOf } from '../words/labels.ts';
import { rangeText } from '../words/locale.ts';
import { text } from '../words/text.ts';
import { compareField } from './compare.ts';

/** What the report is of: days, the comparison, and what rows are grouped by. */
export function controlsOf(choose: Choose, today: string) {
  const range = rangeMenu((chosen) => choose({ range: chosen }), today);
  const compare = compareField(choose, today);
  const grain = segments(
    text.each,
    'grain',
    grains.map((grain) => [grain, text.grains[grain]] as const),
    (grain) => choose({ grain: grain as Grain }),
  );
  const dimensions = el('div');
  const element = el(
    'div',
    { class: 'controls', role: 'group', 'aria-label': text.choose },
    range.element,
    compare.element,
    grain.element,
    el('fieldset', { class: 'segments toggles' }, el('legend', {}, text.by), dimensions),
  );
  let family = '';
  let toggles = new Map<string, HTMLInputElement>();

  const makeToggles = () => {
    const names = dimensionsOf(family);
    const onchange = () => choose({ dimensions: names.filter((name) => toggles.get(name)?.checked) });
    toggles = new Map(names.map((name) => [name, el('input', { type: 'checkbox', value: name, onchange })]));
    dimensions.replaceChildren(
      ...[...toggles].map(([name, input]) =>
        el('label', {}, input, el('span', {}, wordOf(text.dimensions, name))),
      ),
    );
  };

  const show = (state: State) => {
    range.show(state);
    grain.show(state.grain);
    compare.show(state);
    if (state.family !== family) {
      family = state.family;
      makeToggles();
    }
    for (const [name, input] of toggles) input.checked = state.dimensions.includes(name);
    const days = daysOf(state, today);
    set(element, 'data-days', `${days.start}/${days.end}`);
  };
  return { element, show };
}

function rangeMenu(onchoose: (range: State['range']) => void, today: string) {
  const label = el('span', { class: 'summary' });
  const dates = el('span', { class: 'dates' });
  const start = el('input', { type: 'date', id: 'first-day', required: true, ...storedDays });
  const end = el('input', { type: 'date', id: 'last-day', required: true, ...storedDays });
  const said = el('p', { class: 'said', role: 'alert' });
  const take = (range: State['range']) => {
    details.open = false;
    details.querySelector('summary')?.focus();
    onchoose(range);
  };
  const named = Object.keys(presets)
    .filter(isPreset)
    .map((name) => [name, button(text.range.presets[name], () => take(name), { class: 'preset' })] as const);
  const form = el(
    'form',
    {
      class: 'dates',
      onsubmit: (event: Event) => {
        event.preventDefault();
        const range = { start: start.value, end: end.value };
        if (range.start <= range.end) take(range);
        else said.textContent = text.range.inverted;
      },
    },
    el('label', { for: 'first-day' }, text.range.first, start),
    el('label', { for: 'last-day' }, text.range.last, end),
    said,
    el('button', { class: 'primary' }, text.range.apply),
  );
  const details = menu(
    el('span', { class: 'field' }, el('span', {}, text.range.label), label, dates),
    el('div', {}, el('div', { class: 'presets' }, ...named.map(([, each]) => each)), form),
    'range',
  );
  const show = (state: State) => {
    const days = daysOf(state, today);
    const { range } = state;
    dates.textContent = rangeText(days.start, days.end);
    label.textContent = typeof range === 'string' ? text.range.presets[range] : '';
    start.value = days.start;
    end.value = days.end;
    said.textContent = '';
    for (const [name, each] of named) set(each, 'aria-pressed', String(name === range));
  };
  return { element: details, show };
}
