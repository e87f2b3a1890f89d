import type { ChartPoint } from '../rows/protocol.ts';
import { el, named } from '../view/dom.ts';

/** Horizontal bars, the largest first. */
export function bars(points: readonly ChartPoint[]): HTMLElement {
  const most = Math.max(0, ...points.flatMap(({ now, before }) => [now?.value ?? 0, before?.value ?? 0]));
  const bar = (value: number, name: string) => {
    const made = el('span', { class: `bar ${name}` });
    made.style.inlineSize = `${most > 0 ? (Math.max(0, value) / most) * 100 : 0}%`;
    return made;
  };
  return el(
    'ol',
    { class: 'bars' },
    ...points.map(({ labels, now, before }) =>
      el(
        'li',
        {},
        el('span', { class: 'label', title: labels.join(' · ') }, ...named(labels)),
        el('span', { class: 'track' }, bar(now?.value ?? 0, 'now'), before && bar(before.value, 'before')),
        el('span', { class: 'amount', title: now?.whole }, now?.text),
      ),
    ),
  );
}
