import { el, set } from '../parts/dom.ts';
import type { Arranged, Total } from '../rows/protocol.ts';
import type { State } from '../state/state.ts';
import { columnLabel } from '../words/labels.ts';
import { changeText, signed } from '../words/locale.ts';
import { text } from '../words/text.ts';

const meanings: Partial<Record<string, string>> = text.meanings;
/** Less would read as 0 %. */
const leastPercent = 0.05;

/** The totals: a card for each figure, which also chooses what the chart shows. */
export class Cards {
  readonly element = el('fieldset', { class: 'cards' }, el('legend', { class: 'unseen' }, text.totals));
  private readonly onchoose: (metric: string) => void;
  private cards = new Map<string, Card>();

  constructor(onchoose: (metric: string) => void) {
    this.onchoose = onchoose;
    new ResizeObserver(() => {
      for (const card of this.cards.values()) showTotal(card);
    }).observe(this.element);
  }

  /** @param totals absent while rows are arriving: totals of some would look like those of all */
  show(state: State, totals: Arranged['totals'] | undefined): void {
    if ([...this.cards.keys()].join() !== state.metrics.join()) {
      this.cards = new Map(state.metrics.map((metric) => [metric, makeCard(metric, this.onchoose)]));
      this.element.replaceChildren(
        ...[...this.element.children].slice(0, 1),
        ...[...this.cards.values()].map(({ element }) => element),
      );
    }
    this.element.setAttribute('aria-busy', String(totals === undefined));
    for (const [metric, card] of this.cards) {
      const total = totals?.[metric];
      card.input.checked = metric === state.chart;
      card.total = total;
      showTotal(card);
      card.value.title = total?.whole ?? '';
      // What is short for the eye is whole for the ear.
      set(card.value, 'aria-label', total?.whole);
      const change = totals?.[`${metric}_change`];
      card.change.hidden = state.compare === 'none';
      card.change.textContent = !change
        ? '\u00a0'
        : change.exact === '0'
          ? text.unchanged
          : Math.abs(total?.percent ?? 0) >= leastPercent
            ? signed(total?.percent ?? 0, changeText(total?.percent ?? 0))
            : signed(Number(change.exact), change.text);
      card.change.title = change?.whole ?? '';
    }
  }
}

/** Shows the number to its cents, in smaller type where it is long; where there is no room for it, rounded with its unit. */
function showTotal({ value, total }: Card): void {
  const shown = total?.text ?? '–';
  const isWithin = (text: string, long: boolean) => {
    value.textContent = text;
    value.classList.toggle('long', long);
    return value.scrollWidth <= value.clientWidth;
  };
  if (isWithin(shown, false) || isWithin(shown, true) || !total) return;
  if (!isWithin(total.compact, false)) isWithin(total.compact, true);
}

interface Card {
  total?: Total | undefined;
  readonly element: HTMLElement;
  readonly input: HTMLInputElement;
  readonly value: HTMLElement;
  readonly change: HTMLElement;
}

function makeCard(metric: string, onchoose: (metric: string) => void): Card {
  const input = el('input', {
    type: 'radio',
    name: 'chart',
    value: metric,
    onchange: () => onchoose(metric),
  });
  const value = el('output', { class: 'value' });
  const change = el('span', { class: 'change' });
  const name = el('span', { class: 'name', title: meanings[metric] }, columnLabel(metric));
  return { element: el('label', { class: 'card' }, input, name, value, change), input, value, change };
}
