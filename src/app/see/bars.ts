import { type Child, el, named } from '../parts/dom.ts';
import type { ChartPoint } from '../rows/protocol.ts';
import { changeText, signed } from '../words/locale.ts';

/** Horizontal bars, the largest first. */
export function bars(points: readonly ChartPoint[]): HTMLElement {
  const most = Math.max(0, ...points.flatMap(({ now, before }) => [now?.value ?? 0, before?.value ?? 0]));
  const bar = (value: number, name: string) => {
    const made = el('span', { class: `bar ${name}` });
    made.style.inlineSize = `${most > 0 ? (Math.max(0, value) / most) * 100 : 0}%`;
    return made;
  };
  const lines = points.map(({ labels, now, before }) =>
    line(labels, [bar(now?.value ?? 0, 'now'), before && bar(before.value, 'before')], now?.whole, now?.text),
  );
  return el('ol', { class: 'bars' }, ...lines);
}

/** Gains to the one side, losses to the other, with a sign that needs no colour. */
export function changeBars(points: readonly ChartPoint[]): HTMLElement {
  const most = Math.max(...points.map(({ change }) => Math.abs(change?.value ?? 0)));
  const lines = points.map(({ labels, change }) => {
    const value = change?.value ?? 0;
    const bar = el('span', { class: `bar ${value > 0 ? 'gain' : 'loss'}` });
    bar.style.inlineSize = `${most > 0 ? (Math.abs(value) / most) * 50 : 0}%`;
    return line(labels, [bar], change?.whole, changed(change));
  });
  return el('ol', { class: 'bars changes' }, ...lines);
}

function line(
  labels: readonly string[],
  bars: readonly Child[],
  whole?: string,
  amount?: string,
): HTMLElement {
  return el(
    'li',
    {},
    el('span', { class: 'label', title: labels.join(' · ') }, ...named(labels)),
    el('span', { class: 'track' }, ...bars),
    el('span', { class: 'amount', title: whole }, amount),
  );
}

/** A change as text: with its share, where there was something before. */
export function changed(change: ChartPoint['change']): string {
  if (!change) return '';
  const { value, text, percent } = change;
  return signed(value, percent === undefined ? text : `${text} (${changeText(percent)})`);
}
