export type Child = Node | string | undefined | false;
type Properties = Record<string, string | number | boolean | ((event: never) => void) | undefined>;

/**
 * An element with attributes, listeners (`onclick`) and children. `text` comes in as text, never as markup: names of
 * campaigns are not ours.
 */
export function el<K extends keyof HTMLElementTagNameMap>(
  name: K,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (typeof value === 'function') element.addEventListener(key.slice(2), value as EventListener);
    else set(element, key, value);
  }
  element.append(...there(children));
  return element;
}

const there = (children: readonly Child[]) =>
  children.filter((child) => child !== undefined && child !== false);

/** Sets an attribute; `false` and undefined take it away. */
export function set(element: Element, name: string, value: string | number | boolean | undefined): void {
  if (value === undefined || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? '' : String(value));
}

/** Names side by side, each in a direction of its own: what turns the one turns nothing beside it. */
export function named(names: readonly string[]): Child[] {
  return names.flatMap((name, n) => [n > 0 && ' · ', el('bdi', {}, name)]);
}

/** A button for one action. */
export function button(label: string, onclick: () => void, properties: Properties = {}): HTMLButtonElement {
  return el('button', { type: 'button', onclick, ...properties }, label);
}

/** Replaces what is in the element. The focus stays on the button of the same place, or goes to the last one that is not quiet. */
export function refill(element: Element, ...children: readonly Child[]): void {
  const buttons = () => [...element.querySelectorAll<HTMLElement>('button:not(.quiet)')];
  const { activeElement } = document;
  const at = activeElement instanceof HTMLElement ? buttons().indexOf(activeElement) : -1;
  element.replaceChildren(...there(children));
  if (at >= 0) (buttons()[at] ?? buttons().at(-1))?.focus();
}

/** A list to choose one of. @param choices the label of each value */
export function select(
  choices: Readonly<Record<string, string>>,
  properties: Properties = {},
): HTMLSelectElement {
  const options = Object.entries(choices).map(([value, label]) => el('option', { value }, label));
  return el('select', properties, ...options);
}

/** Between a menu and the edge of the window, px. */
const edge = 14;

/**
 * A menu: a button that unfolds a panel below it, within the window. It folds again with Escape, a click elsewhere, and when the
 * focus leaves it.
 */
export function menu(label: HTMLElement | string, panel: HTMLElement, name: string): HTMLDetailsElement {
  const summary = el('summary', {}, label);
  const details = el('details', { class: `menu ${name}` }, summary, panel);
  panel.classList.add('panel');
  const fold = () => details.removeAttribute('open');
  const place = () => {
    if (!details.open) return;
    panel.style.translate = '0';
    const beyond = panel.getBoundingClientRect().right - document.documentElement.clientWidth + edge;
    panel.style.translate = `${Math.min(0, -beyond)}px`;
  };
  // Also when more is said in it than when it was unfolded.
  new ResizeObserver(() => {
    place();
    if (details.open) panel.scrollIntoView({ block: 'nearest' });
  }).observe(panel);
  // A phone is turned. Nothing is scrolled then: its bars come and go as a finger scrolls, which is a resize, too.
  window.addEventListener('resize', place);
  details.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || !details.open) return;
    fold();
    summary.focus();
  });
  details.addEventListener('focusout', ({ relatedTarget }) => {
    if (relatedTarget instanceof Node && !details.contains(relatedTarget)) fold();
  });
  document.addEventListener('pointerdown', ({ target }) => {
    if (target instanceof Node && !details.contains(target)) fold();
  });
  return details;
}

/** One choice of a few, side by side: radio buttons that look like one control. */
export function segments(
  legend: string,
  name: string,
  choices: readonly (readonly [value: string, label: string])[],
  onchoose: (value: string) => void,
): { element: HTMLFieldSetElement; show: (value: string) => void } {
  const inputs = choices.map(([value, label]) => {
    const input = el('input', { type: 'radio', name, value, onchange: () => onchoose(value) });
    return { input, label: el('label', {}, input, el('span', {}, label)) };
  });
  const element = el(
    'fieldset',
    { class: 'segments' },
    el('legend', {}, legend),
    el('div', {}, ...inputs.map(({ label }) => label)),
  );
  const show = (value: string) => {
    for (const { input } of inputs) input.checked = input.value === value;
  };
  return { element, show };
}
