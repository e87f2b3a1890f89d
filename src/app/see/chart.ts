import uPlot from 'uplot';
import { button, el, refill, set } from '../parts/dom.ts';
import type { ChartPoint, Facts } from '../rows/protocol.ts';
import { isPart } from '../state/ranges.ts';
import { type Choose, ranksChanges, type State } from '../state/state.ts';
import { columnLabel } from '../words/labels.ts';
import { dayOfYearText, locale, monthText, shortDayText } from '../words/locale.ts';
import { text } from '../words/text.ts';
import { bars, changeBars } from './bars.ts';
import { asTable, legend, said } from './chart-words.ts';
import { hatch } from './hatch.ts';
import { follow } from './tip.ts';

const height = 232;
/** Between two points that the axis names. */
const steps = (each: number) => [1, 2, ...Array.from({ length: 16 }, (_, n) => each * 2 ** n)];
/** As many digits as a tick of the axis has. */
const tickFormat = { notation: 'compact', maximumSignificantDigits: 3 } as const;
const counts = new Intl.NumberFormat(locale, tickFormat);
const shares = new Intl.NumberFormat(locale, { ...tickFormat, style: 'percent' });

/** The chosen figure over time, or the largest rows where no day is asked; with the same as a table. */
export class Chart {
  readonly element = el('figure', { class: 'chart' });
  private readonly heading = el('figcaption');
  private readonly canvas = el('div', { class: 'plot' });
  private readonly table = el('div', {
    class: 'scroll',
    tabindex: 0,
    role: 'region',
    'aria-label': text.chart.asTable,
  });
  private readonly changes: HTMLButtonElement;
  private plot: uPlot | undefined;
  private points: readonly ChartPoint[] = [];
  private grain: State['grain'] = 'day';
  private shown: (() => void) | undefined;

  constructor(choose: Choose) {
    const toggle = () => choose({ changes: this.changes.getAttribute('aria-pressed') !== 'true' });
    this.changes = button(text.chart.changes, toggle, { class: 'preset' });
    this.element.append(
      this.heading,
      this.canvas,
      el('details', { class: 'as-table' }, el('summary', {}, text.chart.asTable), this.table),
    );
    this.canvas.addEventListener('keydown', (event) => this.key(event));
    this.canvas.addEventListener('blur', () => this.plot?.setCursor({ left: -10, top: -10 }));
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    // The colours are those of the page, also when they change.
    document.addEventListener('themechange', () => this.shown?.());
  }

  clear(state: State): void {
    this.plot?.destroy();
    this.plot = undefined;
    this.shown = undefined;
    this.changes.hidden = state.compare === 'none';
    set(this.changes, 'aria-pressed', String(ranksChanges(state)));
    refill(this.heading, this.changes);
    this.canvas.replaceChildren();
    this.table.replaceChildren();
    this.points = [];
  }

  show(state: State, points: readonly ChartPoint[], facts: Facts): void {
    this.clear(state);
    const ranked = ranksChanges(state);
    const grain = ranked ? 'total' : state.grain;
    const dated = grain !== 'total';
    const name = columnLabel(state.chart);
    this.points = points;
    this.grain = grain;
    const { overTime, largest, changed } = text.chart;
    const title = dated ? overTime(name, text.grains[grain]) : (ranked ? changed : largest)(name);
    const keys = ranked ? [] : legend(points, dated ? facts : undefined, grain);
    refill(this.heading, el('span', {}, title), ...keys, this.changes);
    this.table.append(asTable(name, points, grain, facts));
    this.shown = () => {
      this.plot?.destroy();
      this.plot = undefined;
      this.canvas.replaceChildren();
      if (dated) this.plot = this.draw(points, facts, grain);
      else this.canvas.append(ranked ? changeBars(points) : bars(points));
    };
    this.shown();
    // Bars are said by the table; of days the keyboard goes from one to the next.
    set(this.canvas, 'aria-hidden', !dated && 'true');
    const slider = { tabindex: 0, role: 'slider', 'aria-label': title };
    const values = { 'aria-valuemin': 0, 'aria-valuemax': points.length - 1 };
    for (const [name, value] of Object.entries({ ...slider, ...values }))
      set(this.canvas, name, dated && value);
    const last = points.findLastIndex(({ now }) => now);
    if (dated) this.say(Math.max(0, last));
  }

  /** What the keyboard is on. */
  private say(n: number): void {
    const point = this.points[n];
    if (!point) return;
    set(this.canvas, 'aria-valuenow', n);
    set(this.canvas, 'aria-valuetext', said(point, this.grain).join(', '));
  }

  private key(event: KeyboardEvent): void {
    const { plot } = this;
    const last = this.points.length - 1;
    const at = Number(this.canvas.getAttribute('aria-valuenow'));
    const isShown = typeof plot?.cursor.idx === 'number';
    const page = Math.ceil(last / 10);
    const moves: Record<string, number> = {
      ArrowRight: at + 1,
      ArrowUp: at + 1,
      ArrowLeft: at - 1,
      ArrowDown: at - 1,
      PageUp: at + page,
      PageDown: at - page,
      Home: 0,
      End: last,
    };
    const wanted = event.ctrlKey || event.metaKey || event.altKey ? undefined : moves[event.key];
    if (!plot || wanted === undefined) return;
    event.preventDefault();
    // The first step shows where the keyboard is.
    const n = isShown || /^(Home|End)$/.test(event.key) ? Math.min(last, Math.max(0, wanted)) : at;
    plot.setCursor({ left: plot.valToPos(n, 'x'), top: 0 });
  }

  private resize(): void {
    const width = this.canvas.clientWidth;
    if (this.plot && width > 0 && width !== this.plot.width) this.plot.setSize({ width, height });
  }

  /** Each day, week or month has the same room, from the first to the last that is drawn. */
  private draw(points: readonly ChartPoint[], facts: Facts, grain: State['grain']): uPlot {
    const style = getComputedStyle(this.element);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour('--soft'), font: `12px ${style.fontFamily}`, ticks: { show: false } };
    const compared = points.some(({ before }) => before);
    const values = points.map(({ now }) => now?.value ?? null);
    const before = points.map(({ before }) => before?.value ?? null);
    const cut = points.map((point) => grain !== 'total' && isPart(point, grain));
    // A week or month that is cut falls behind the others: its line is dashed, from its neighbour on.
    const whole = values.map((value, n) => (cut[n] ? null : value));
    const parts = values.map((value, n) => (cut[n] || cut[n - 1] || cut[n + 1] ? value : null));
    const share = points.some(({ now }) => now?.text.includes('%'));
    const isOfYears = points[0]?.start.slice(0, 4) !== points.at(-1)?.start.slice(0, 4);
    const name = grain === 'month' ? monthText : isOfYears ? dayOfYearText : shortDayText;
    const few = points.length < 40;
    const tip = el('div', { class: 'tip', hidden: true });
    const made = new uPlot(
      {
        width: Math.max(200, this.canvas.clientWidth),
        height,
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false } },
        scales: {
          x: { time: false, range: [-0.5, points.length - 0.5] },
          y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.08 : low < 0 ? 0 : 1] },
        },
        axes: [
          {
            ...axis,
            grid: { show: false },
            values: (_, places) => places.map((n) => name(points[n]?.start ?? '')),
            incrs: steps(grain === 'month' ? 3 : 7),
            space: name === shortDayText ? 58 : 78,
            size: 30,
          },
          {
            ...axis,
            grid: { stroke: colour('--line'), width: 1 },
            values: (_, values) => values.map((value) => (share ? shares : counts).format(value)),
            // Before there are values it is asked, too.
            size: (_, values: string[] | null) =>
              Math.max(64, 16 + 7.5 * Math.max(0, ...(values ?? []).map(({ length }) => length))),
          },
        ],
        series: [
          {},
          {
            stroke: colour('--accent'),
            fill: colour('--accent-wash'),
            width: 2,
            points: { show: few, size: 5, fill: colour('--accent'), filter: alone(whole, few) },
          },
          {
            stroke: colour('--soft'),
            width: 1.5,
            dash: [5, 4],
            points: { show: false, size: 5, fill: colour('--soft'), filter: alone(before, false) },
            show: compared,
          },
          {
            stroke: colour('--accent'),
            width: 1.5,
            dash: [2, 3],
            points: {
              show: true,
              size: 6,
              fill: colour('--raised'),
              filter: () => [...cut.keys()].filter((n) => cut[n] && values[n] !== null),
            },
          },
        ],
        hooks: {
          drawClear: [(plot) => hatch(plot, points, facts, colour('--hatch'))],
          setCursor: [
            (plot) => {
              const { idx } = plot.cursor;
              follow(tip, plot, typeof idx === 'number' ? said(points[idx], grain) : []);
              if (typeof idx === 'number') this.say(idx);
            },
          ],
        },
      },
      [points.map((_, n) => n), whole, before, parts],
      this.canvas,
    );
    made.over.append(tip);
    // It would be drawn a moment later: too late for paper.
    made.batch(() => {});
    const touch = ({ pointerType, clientX }: PointerEvent) => {
      if (pointerType === 'mouse') return;
      made.setCursor({ left: clientX - made.over.getBoundingClientRect().left, top: 0 });
    };
    made.over.addEventListener('pointerdown', touch);
    made.over.addEventListener('pointermove', touch);
    return made;
  }
}

/** The points that no line leads to: they would not be seen. */
function alone(values: readonly (number | null)[], shown: boolean): () => number[] | null {
  const is = (n: number) => (values[n] ?? null) !== null;
  const found = [...values.keys()].filter((n) => is(n) && !is(n - 1) && !is(n + 1));
  return () => (shown ? null : found);
}
