import { type Child, el } from './dom.ts';

type Line = readonly Child[];

/** A table of few rows; each line is the list of its cells. */
export function table(
  properties: { readonly 'aria-label'?: string; readonly class?: string },
  heads: readonly Line[],
  rows: readonly Line[],
  foot?: Line,
): HTMLTableElement {
  const line = (cells: Line) => el('tr', {}, ...cells);
  return el(
    'table',
    properties,
    el('thead', {}, ...heads.map(line)),
    el('tbody', {}, ...rows.map(line)),
    foot && el('tfoot', {}, line(foot)),
  );
}

export const head = (label: string) => el('th', { scope: 'col' }, label);
export const numberHead = (label: string) => el('th', { scope: 'col', class: 'number' }, label);
export const number = (value: string) => el('td', { class: 'number' }, value);
/** Where the table is wider than its place. */
export const scrolling = (table: HTMLTableElement) => el('div', { class: 'parts', tabindex: 0 }, table);
