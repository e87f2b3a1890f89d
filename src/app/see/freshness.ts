import type { Facts } from '../rows/protocol.ts';
import type { State } from '../state/state.ts';
import { text } from '../text.ts';
import { el } from '../view/dom.ts';
import { dayText, momentText, rangeText } from '../view/locale.ts';

/** How fresh the figures are, and which days are not final. */
export class Freshness {
  readonly element = el('p', { class: 'fresh' });

  /** @param until the last day that has rows, where that is known */
  show(state: State, facts: Facts, until?: string): void {
    const { asked, loadedAt, unconfirmed, comparedTo } = facts;
    const said = [
      until && el('span', {}, text.fresh.until(dayText(until))),
      loadedAt !== undefined && el('span', {}, text.fresh.loaded(momentText(loadedAt))),
      asked && el('span', {}, text.fresh.asked(asked)),
      state.compare !== 'none' && comparedTo && el('span', {}, text.compare.with(rangeText(...comparedTo))),
    ];
    const open =
      unconfirmed.length > 0 &&
      el(
        'span',
        { class: 'open-days' },
        text.fresh.unconfirmed(unconfirmed.map(([first, last]) => rangeText(first, last)).join(', ')),
      );
    this.element.replaceChildren(...[open, ...said].filter((part) => part instanceof Node));
  }
}
