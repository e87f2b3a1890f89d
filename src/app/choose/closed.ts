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
export function closedField(choose: Choose, session: Opened, onchanges: () => void) {
  const onchange = () => choose({ closed: name.value === 'closed' });
  const name = select(text.closed.names, { id: 'closed', onchange });
  const at = el('output', { class: 'days', for: 'closed' });
  const changes = button(text.closed.changes, onchanges, { class: 'preset' });
  const label = el('label', { for: 'closed' }, text.closed.label);
  const element = el('div', { class: 'field closed', hidden: true }, label, name, at, changes);
  /** What was asked last. */
  let about = '';

  const aboutOf = (state: State) => {
    const { start, end } = daysOf(state, session.today);
    return `${state.family} ${start} ${end}`;
  };

  /** @param closedAt absent: not all months are closed, or nobody knows */
  const know = (of: string, closedAt?: string) => {
    about = of;
    element.hidden = closedAt === undefined && name.value !== 'closed';
    changes.hidden = closedAt === undefined;
    const when = closedAt && momentText(Date.parse(closedAt), session.clock);
    at.textContent = when ? text.closed.at(when) : '';
  };

  const show = (state: State) => {
    name.value = state.closed ? 'closed' : 'today';
    if (aboutOf(state) !== about) know('');
    if (state.closed) element.hidden = false;
  };

  /** Asks the service what is closed, if days or report are others than before. */
  const ask = async (state: State) => {
    const of = aboutOf(state);
    if (of === about) return;
    about = of;
    const { start, end } = daysOf(state, session.today);
    const range = { start_time: start, end_time: end };
    const found = await asked<Closes>(`/v1/${state.family}/closes`, session, range);
    if (of !== about) return;
    const closes = 'result' in found ? found.result.closes : [];
    const closed = new Set(closes.map(({ month }) => month));
    const areClosed = closed.size === monthOf(end) - monthOf(start) + 1;
    // A service that did not answer is asked again.
    know('result' in found ? of : '', areClosed ? closes[0]?.closed_at : undefined);
  };
  return { element, show, ask };
}

/** The months since the year 0. */
const monthOf = (day: string) => 12 * Number(day.slice(0, 4)) + Number(day.slice(5, 7));
