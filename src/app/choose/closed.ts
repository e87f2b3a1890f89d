import { button, el, select } from '../parts/dom.ts';
import { asked } from '../rows/asked.ts';
import type { Opened } from '../state/session.ts';
import { type Choose, daysOf, type State } from '../state/state.ts';
import { momentText } from '../words/locale.ts';
import { text } from '../words/text.ts';

interface Closes {
  /** Of months that have days of the range, newest first. */
  readonly closes: readonly { readonly month: string; readonly closed_at: string }[];
}

/** Whether figures are those of today or as the months of the range were closed; in sight where all of them were. */
export class Closed {
  readonly element: HTMLElement;
  private readonly session: Opened;
  private readonly name: HTMLSelectElement;
  private readonly at = el('output', { class: 'days', for: 'closed' });
  private readonly changes: HTMLButtonElement;
  /** What was asked last. */
  private about = '';

  constructor(choose: Choose, session: Opened, onchanges: () => void) {
    this.session = session;
    const onchange = () => choose({ closed: this.name.value === 'closed' });
    this.name = select(text.closed.names, { id: 'closed', onchange });
    this.changes = button(text.closed.changes, onchanges, { class: 'preset' });
    this.element = el(
      'div',
      { class: 'field closed', hidden: true },
      el('label', { for: 'closed' }, text.closed.label),
      this.name,
      this.at,
      this.changes,
    );
  }

  show(state: State): void {
    this.name.value = state.closed ? 'closed' : 'today';
    if (this.aboutOf(state) !== this.about) this.know('');
    if (state.closed) this.element.hidden = false;
  }

  /** Asks the service what is closed, if days or report are others than before. */
  async ask(state: State): Promise<void> {
    const about = this.aboutOf(state);
    if (about === this.about) return;
    this.about = about;
    const { start, end } = daysOf(state, this.session.today);
    const range = { start_time: start, end_time: end };
    const found = await asked<Closes>(`/v1/${state.family}/closes`, this.session, range);
    if (about !== this.about) return;
    const closes = 'result' in found ? found.result.closes : [];
    const closed = new Set(closes.map(({ month }) => month));
    const areClosed = closed.size === monthOf(end) - monthOf(start) + 1;
    // A service that did not answer is asked again.
    this.know('result' in found ? about : '', areClosed ? closes[0]?.closed_at : undefined);
  }

  private aboutOf(state: State): string {
    const { start, end } = daysOf(state, this.session.today);
    return `${state.family} ${start} ${end}`;
  }

  /** @param closedAt absent: not all months are closed, or nobody knows */
  private know(about: string, closedAt?: string): void {
    this.about = about;
    this.element.hidden = closedAt === undefined && this.name.value !== 'closed';
    this.changes.hidden = closedAt === undefined;
    const when = closedAt && momentText(Date.parse(closedAt), this.session.clock);
    this.at.textContent = when ? text.closed.at(when) : '';
  }
}

/** The months since the year 0. */
const monthOf = (day: string) => 12 * Number(day.slice(0, 4)) + Number(day.slice(5, 7));
