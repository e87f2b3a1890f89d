import { el, refill } from '../parts/dom.ts';
import type { Facts } from '../rows/protocol.ts';
import type { Clock } from '../state/session.ts';
import type { State } from '../state/state.ts';
import { dayText, momentText, rangeText, zonedText } from '../words/locale.ts';
import { text } from '../words/text.ts';

/** How fresh the figures are, and which days are not final. */
export class Freshness {
  /** Not there before it says something: the table above it gets as high as its rows. */
  readonly element = el('p', { class: 'fresh', hidden: true });

  /** @param until the last day of which something was counted, where that is known */
  show(state: State, facts: Facts, clock: Clock | undefined, until?: string): void {
    const { asked, loadedAt, unconfirmed, comparedTo } = facts;
    const said = [
      state.closed && el('span', {}, text.closed.names.closed),
      until && el('span', {}, text.fresh.until(dayText(until))),
      loadedAt !== undefined && el('span', {}, text.fresh.loaded(momentText(loadedAt, clock))),
      asked && el('span', {}, text.fresh.asked(zonedText(asked))),
      comparedTo && el('span', {}, text.compare.with(rangeText(...comparedTo))),
    ];
    const open =
      unconfirmed.length > 0 &&
      el(
        'span',
        { class: 'open-days' },
        text.fresh.unconfirmed(unconfirmed.map(([first, last]) => rangeText(first, last)).join(', ')),
      );
    this.element.hidden = false;
    refill(this.element, open, ...said);
  }
}
