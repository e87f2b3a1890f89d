import type uPlot from 'uplot';
import { el } from '../parts/dom.ts';

/** Shows what the cursor is on, beside it and within the chart. */
export function follow(tip: HTMLElement, plot: uPlot, lines: readonly string[]): void {
  const [when, amount = '', ...more] = lines;
  tip.hidden = when === undefined;
  if (when === undefined) return;
  tip.replaceChildren(
    el('span', {}, when),
    el('strong', {}, amount),
    ...more.map((line) => el('span', {}, line)),
  );
  const { left = 0 } = plot.cursor;
  const { offsetLeft, clientWidth } = plot.over;
  const wide = Math.ceil(tip.getBoundingClientRect().width);
  const beside = left > clientWidth / 2 ? left - wide - 12 : left + 12;
  const within = Math.max(-offsetLeft, Math.min(beside, plot.width - offsetLeft - wide));
  tip.style.transform = `translateX(${within}px)`;
}
