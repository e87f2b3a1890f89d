import { el } from '../parts/dom.ts';
import type { State } from '../state/state.ts';
import { text } from '../words/text.ts';

/** Above the table: how many rows, a search, and menus. */
export class Toolbar {
  readonly element = el('div', { class: 'toolbar' });
  readonly actions = el('div', { class: 'actions' });
  private readonly count = el('h2', { class: 'count' });
  private readonly bar = el('progress', { hidden: true, 'aria-label': text.progress.asking });
  private readonly announced = el('p', { class: 'unseen', role: 'status' });
  private readonly find: HTMLInputElement;
  /** Runs while more may be typed. */
  private typing: ReturnType<typeof setTimeout> | undefined;

  constructor(onfind: (find: string) => void) {
    this.find = el('input', {
      type: 'search',
      'aria-label': text.table.find,
      placeholder: text.table.findHint,
      autocomplete: 'off',
      spellcheck: 'false',
      oninput: () => {
        clearTimeout(this.typing);
        this.typing = setTimeout(() => {
          this.typing = undefined;
          onfind(this.find.value);
        }, 120);
      },
    });
    this.element.append(this.count, this.bar, this.announced, this.find, this.actions);
  }

  show(state: State): void {
    if (this.typing === undefined) this.find.value = state.find;
  }

  /** For the eyes: it may change many times in a second. */
  say(what: string, busy = what === text.progress.asking): void {
    this.count.textContent = what || '\u00a0';
    this.bar.hidden = !busy;
  }

  /** For the ears: once, until it is something else. */
  announce(what: string): void {
    if (this.announced.textContent !== what) this.announced.textContent = what;
  }
}
