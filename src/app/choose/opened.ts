import { button, el, refill } from '../parts/dom.ts';
import { dimensionsOf, textFields } from '../state/fields.ts';
import type { Choose, State } from '../state/state.ts';
import { wordOf } from '../words/labels.ts';
import { text } from '../words/text.ts';

/** Where one campaign or ad unit is chosen: its days and its parts, each a step of the history. */
export function openedBar(choose: Choose) {
  const element = el('nav', { class: 'opened', hidden: true, 'aria-label': text.opened });
  const show = ({ family, filters, grain, dimensions }: State) => {
    const [entity = ''] = textFields(family, []);
    const [name, ...others] = filters[entity] ?? [];
    element.hidden = name === undefined || others.length > 0;
    if (name === undefined) return;
    const part = (label: string, change: Pick<State, 'grain' | 'dimensions'>) => {
      const isShown = grain === change.grain && dimensions.join() === change.dimensions.join();
      return button(label, () => choose(change), { class: 'preset', 'aria-pressed': String(isShown) });
    };
    refill(
      element,
      el('bdi', {}, name || text.filters.empty),
      part(text.range.label, { grain: 'day', dimensions: [] }),
      ...dimensionsOf(family).map((each) =>
        part(wordOf(text.parts, each), { grain: 'total', dimensions: [each] }),
      ),
    );
  };
  return { element, show };
}
