import { button, type Child, el } from '../parts/dom.ts';
import { failureText } from '../parts/notice.ts';
import { scrolling } from '../parts/table.ts';
import type { Asked } from '../rows/protocol.ts';
import { text } from '../words/text.ts';

/** Shows over the page what the service answers, or why it does not; of several questions the last one. */
export function answerDialog(title: string) {
  const element = el('dialog', { class: 'explained', 'aria-label': title });
  let turn = 0;
  /** @param told what there is to say of the answer, and its table, where it has rows */
  const show = async <Result>(
    about: readonly Child[],
    asking: Promise<Asked<Result>>,
    told: (result: Result) => readonly [string, HTMLTableElement?],
  ) => {
    const asked = ++turn;
    const said = el('p', { role: 'status' }, text.progress.asking);
    element.replaceChildren(
      el('h2', {}, title),
      el('p', {}, ...about),
      said,
      button(text.explained.close, () => element.close()),
    );
    if (!element.open) element.showModal();
    const answer = await asking;
    if (asked !== turn) return;
    const [words, table] = 'failure' in answer ? [failureText(answer.failure)] : told(answer.result);
    said.textContent = words;
    said.hidden = words === '';
    if (table) said.after(scrolling(table));
  };
  return { element, show };
}
