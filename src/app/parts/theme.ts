import { remembered } from '../state/memory.ts';
import { set } from './dom.ts';

const dark = matchMedia('(prefers-color-scheme: dark)');
dark.addEventListener('change', () => showTheme());
// Paper is always light.
addEventListener('beforeprint', () => showTheme('light'));
addEventListener('afterprint', () => showTheme());

export function chosenTheme(): string {
  const kept = remembered('theme', 'auto');
  return ['light', 'dark'].includes(kept) ? kept : 'auto';
}

/** The colours that the reader chose; those of the system otherwise. */
export function showTheme(chosen = chosenTheme()): void {
  set(document.documentElement, 'data-theme', chosen === 'auto' ? (dark.matches ? 'dark' : 'light') : chosen);
  document.dispatchEvent(new Event('themechange'));
}
