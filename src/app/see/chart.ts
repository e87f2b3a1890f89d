import uPlot from 'uplot';
import type { ChartPoint, Facts } from '../rows/protocol.ts';
import type { State } from '../state/state.ts';
import { text } from '../text.ts';
import { el } from '../view/dom.ts';
import { columnLabel } from '../view/labels.ts';
import { locale, rangeText, shortDayText } from '../view/locale.ts';
import { bars } from './bars.ts';
import { hatch } from './hatch.ts';

const height = 232;
/** Between two days that the axis names. */
const incrs = [1, 2, 7, 14, 28, 61, 91, 182, 365].map((days) => days * 86_400);
const seconds = (day: string) => Date.parse(day) / 1000;
const compact = new Intl.NumberFormat(locale, { notation: 'compact', maximumFractionDigits: 2 });

/** The chosen figure over time, or the largest rows where no day is asked; with the same as a table. */
export class Chart {
  readonly element = el('figure', { class: 'chart' });
  private readonly heading = el('figcaption');
  private readonly canvas = el('div', { class: 'plot', 'aria-hidden': 'true' });
  private readonly table = el('div', {
    class: 'scroll',
    tabindex: 0,
    role: 'region',
    'aria-label': text.chart.asTable,
  });
  private plot: uPlot | undefined;
  private shown: (() => void) | undefined;

  constructor() {
    this.element.append(
      this.heading,
      this.canvas,
      el('details', { class: 'as-table' }, el('summary', {}, text.chart.asTable), this.table),
    );
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    // The colours are those of the page, also when they change.
    const redraw = () => this.shown?.();
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
    document.addEventListener('themechange', redraw);
  }

  clear(): void {
    this.plot?.destroy();
    this.plot = undefined;
    this.shown = undefined;
    this.canvas.replaceChildren();
    this.table.replaceChildren();
  }

  show(state: State, points: readonly ChartPoint[], facts: Facts): void {
    this.clear();
    const dated = state.grain !== 'total';
    const name = columnLabel(state.chart);
    this.heading.textContent = dated
      ? text.chart.overTime(name, text.grains[state.grain])
      : text.chart.largest(name);
    this.table.append(asTable(name, points, dated, facts));
    this.shown = () => {
      this.plot?.destroy();
      this.plot = undefined;
      this.canvas.replaceChildren();
      if (dated) this.plot = this.draw(points, facts);
      else this.canvas.append(bars(points));
    };
    this.shown();
  }

  private resize(): void {
    const width = this.canvas.clientWidth;
    if (this.plot && width > 0 && width !== this.plot.width) this.plot.setSize({ width, height });
  }

  private draw(points: readonly ChartPoint[], facts: Facts): uPlot {
    const style = getComputedStyle(this.element);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour('--soft'), font: `12px ${style.fontFamily}`, ticks: { show: false } };
    const compared = points.some(({ before }) => before !== undefined);
    const now = points.map(({ value }) => value);
    const share = points.some(({ text }) => text.includes('%'));
    const tick = (value: number) => (share ? `${compact.format(value * 100)} %` : compact.format(value));
    const label = (time: number) => shortDayText(new Date(time * 1000).toISOString().slice(0, 10));
    const few = points.length < 40;
    const made = new uPlot(
      {
        width: Math.max(200, this.canvas.clientWidth),
        height,
        tzDate: (time) => uPlot.tzDate(new Date(time * 1000), 'UTC'),
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false } },
        scales: { y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.08 : 1] } },
        axes: [
          {
            ...axis,
            grid: { show: false },
            values: (_, times) => times.map(label),
            incrs,
            space: 70,
            size: 30,
          },
          {
            ...axis,
            grid: { stroke: colour('--line'), width: 1 },
            values: (_, values) => values.map(tick),
            size: 64,
          },
        ],
        series: [
          {},
          {
            stroke: colour('--accent'),
            fill: colour('--accent-wash'),
            width: 2,
            points: { show: few, size: 5, fill: colour('--accent') },
          },
          { stroke: colour('--soft'), width: 1.5, dash: [5, 4], points: { show: false }, show: compared },
        ],
        hooks: { drawClear: [(plot) => hatch(plot, points, facts, colour('--hatch'))] },
      },
      [points.map(({ start }) => seconds(start)), now, points.map(({ before }) => before ?? null)],
      this.canvas,
    );
    followCursor(made, points);
    return made;
  }
}

/** Says what is under the pointer. */
function followCursor(plot: uPlot, points: readonly ChartPoint[]): void {
  const tip = el('div', { class: 'tip', hidden: true });
  plot.over.append(tip);
  plot.over.addEventListener('pointerleave', () => {
    tip.hidden = true;
  });
  plot.over.addEventListener('pointermove', () => {
    const { idx, left = 0 } = plot.cursor;
    const point = typeof idx === 'number' ? points[idx] : undefined;
    tip.hidden = !point;
    if (!point) return;
    tip.replaceChildren(
      el('span', {}, rangeText(point.start, point.end)),
      el('strong', {}, point.text),
      ...(point.beforeText === undefined
        ? []
        : [el('span', {}, `${text.chart.before}: ${point.beforeText}`)]),
    );
    tip.style.transform = `translateX(${left > plot.over.clientWidth / 2 ? left - tip.offsetWidth - 12 : left + 12}px)`;
  });
}

function asTable(name: string, points: readonly ChartPoint[], dated: boolean, facts: Facts): HTMLElement {
  const compared = points.some(({ beforeText }) => beforeText !== undefined);
  const head = [dated ? text.chart.when : text.chart.what, name, ...(compared ? [text.chart.before] : [])];
  const rows = points.map((point) => {
    const open = facts.unconfirmed.some(([first, last]) => point.start <= last && point.end >= first);
    const what = dated ? rangeText(point.start, point.end) : point.label;
    return el(
      'tr',
      {},
      el('th', { scope: 'row' }, open && dated ? `${what} (${text.chart.unconfirmed})` : what),
      el('td', {}, point.text),
      compared && el('td', {}, point.beforeText ?? ''),
    );
  });
  return el(
    'table',
    {},
    el('thead', {}, el('tr', {}, ...head.map((title) => el('th', { scope: 'col' }, title)))),
    el('tbody', {}, ...rows),
  );
}
