import { button, el, menu } from '../parts/dom.ts';
import { metricsOf } from '../state/fields.ts';
import { remember } from '../state/memory.ts';
import type { Choose, State } from '../state/state.ts';
import { columnLabel } from '../words/labels.ts';
import { text } from '../words/text.ts';

/** The menu of the columns: which figures to show, and in which order. */
export class MetricsMenu {
  readonly element: HTMLDetailsElement;
  private readonly choose: Choose;
  private readonly list = el('ul', { class: 'metrics' });
  private state: State | undefined;

  constructor(choose: Choose, onresetwidths: () => void) {
    this.choose = choose;
    this.element = menu(
      text.metrics.label,
      el('div', {}, this.list, button(text.metrics.widths, onresetwidths, { class: 'quiet' })),
      'columns',
    );
  }

  show(state: State): void {
    this.state = state;
    const all = metricsOf(state.family).map(({ id }) => id);
    const order = [...state.metrics, ...all.filter((id) => !state.metrics.includes(id))];
    const focused = document.activeElement?.getAttribute('data-focus');
    this.list.replaceChildren(...order.map((metric) => this.line(state, metric)));
    // The line was made again: the focus stays where it was, or goes to the check box of a column that can move no further.
    const place = (name: string) => this.list.querySelector<HTMLElement>(`[data-focus="${name}"]:enabled`);
    if (focused) (place(focused) ?? place(focused.replace(/-.*/, '-show')))?.focus();
  }

  private line(state: State, metric: string): HTMLLIElement {
    const at = state.metrics.indexOf(metric);
    const name = columnLabel(metric);
    const input = el('input', {
      type: 'checkbox',
      'data-focus': `${metric}-show`,
      'aria-label': text.metrics.show(name),
      onchange: () => this.toggle(metric),
    });
    input.checked = at >= 0;
    input.disabled = at >= 0 && state.metrics.length === 1;
    const mover = (by: number, sign: string, label: string) =>
      button(sign, () => this.move(metric, by), {
        class: 'quiet',
        'aria-label': label,
        'data-focus': `${metric}-${by}`,
        disabled: at < 0 || at + by < 0 || at + by >= state.metrics.length,
      });
    return el(
      'li',
      {},
      el('label', {}, input, el('span', {}, name)),
      mover(-1, '↑', text.metrics.earlier(name)),
      mover(1, '↓', text.metrics.later(name)),
    );
  }

  private toggle(metric: string): void {
    const { metrics = [] } = this.state ?? {};
    this.set(metrics.includes(metric) ? metrics.filter((id) => id !== metric) : [...metrics, metric]);
  }

  private move(metric: string, by: number): void {
    const metrics = [...(this.state?.metrics ?? [])];
    const at = metrics.indexOf(metric);
    metrics.splice(at, 1);
    metrics.splice(at + by, 0, metric);
    this.set(metrics);
  }

  private set(metrics: readonly string[]): void {
    if (!this.state) return;
    remember(`metrics-${this.state.family}`, metrics);
    this.choose({ metrics });
  }
}
