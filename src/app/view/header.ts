import { remember, remembered } from '../state/memory.ts';
import { text } from '../text.ts';
import { brand } from './brand.ts';
import { button, el, set } from './dom.ts';

const themes = ['auto', 'light', 'dark'] as const;
type Theme = (typeof themes)[number];

/** The head of the page: which network, which report, whose account, colours, the way out. */
export function header(family: HTMLElement | undefined, account: string, onSignOut: () => void): HTMLElement {
  return el(
    'header',
    { class: 'masthead' },
    el('h1', { class: 'brand' }, brand()),
    family,
    el(
      'div',
      { class: 'aside' },
      el('span', { class: 'account', title: account }, `${text.account} `, el('bdi', {}, account)),
      themeSwitch(),
      el('a', { href: '/docs' }, text.documentation),
      button(text.signOut, onSignOut, { class: 'quiet' }),
    ),
  );
}

function themeSwitch(): HTMLElement {
  const choose = el(
    'select',
    {
      id: 'theme',
      'aria-label': text.theme.label,
      onchange: () => {
        remember('theme', choose.value);
        showTheme();
      },
    },
    ...themes.map((theme) => el('option', { value: theme }, text.theme[theme])),
  );
  choose.value = showTheme();
  return choose;
}

/** The colours that the reader chose; those of the system otherwise. */
function showTheme(): Theme {
  const kept = remembered<string>('theme', 'auto');
  const theme = themes.find((known) => known === kept) ?? 'auto';
  set(document.documentElement, 'data-theme', theme === 'auto' ? undefined : theme);
  document.dispatchEvent(new Event('themechange'));
  return theme;
}
