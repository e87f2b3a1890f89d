import type { ChartPoint } from '../rows/protocol.ts';
import { el } from '../view/dom.ts';

/** Horizontal bars, the largest first. */
export function bars(points: readonly ChartPoint[]): HTMLElement {
  const most = Math.max(0, ...points.flatMap(({ value = 0, before = 0 }) => [value, before]));
  const bar = (value: number, name: string) => {
    const made = el('span', { class: `bar ${name}` });
    made.style.inlineSize = `${most > 0 ? (Math.max(0, value) / most) * 100 : 0}%`;
    return made;
  };
  return el(
    'ol',
    { class: 'bars' },
    ...points.map(({ label, value = 0, text, before }) =>
      el(
        'li',
        {},
        el('span', { class: 'label', title: label }, label),
        el('span', { class: 'track' }, bar(value, 'now'), before !== undefined && bar(before, 'before')),
        el('span', { class: 'amount' }, text),
      ),
    ),
  );
}
