import { brand } from '../parts/brand.ts';
import { button, el, menu, select } from '../parts/dom.ts';
import { chosenTheme, showTheme } from '../parts/theme.ts';
import { remember } from '../state/memory.ts';
import { languages } from '../words/languages.ts';
import { chosenLanguage } from '../words/locale.ts';
import { text } from '../words/text.ts';

export interface Head {
  /** The choice of the report, where there is one. */
  readonly family: HTMLElement | undefined;
  readonly account: string;
  /** All accounts of the person who signed in; empty with a token. */
  readonly accounts: readonly string[];
  readonly onAccount: (account: string) => void;
  readonly onSignOut: (everywhere: boolean) => void;
}

/** The head of the page: which network, which report, whose account, colours, the way out. */
export function header({ family, account, accounts, onAccount, onSignOut }: Head): HTMLElement {
  return el(
    'header',
    { class: 'masthead' },
    el('h1', { class: 'brand' }, brand()),
    family,
    el(
      'div',
      { class: 'aside' },
      el(
        'span',
        { class: 'account', title: account },
        `${text.account} `,
        accounts.length > 1 ? accountSwitch(account, accounts, onAccount) : el('bdi', {}, account),
      ),
      themeSwitch(),
      languageSwitch(),
      el('a', { href: '/docs' }, text.documentation),
      accounts.length > 0
        ? menu(
            text.signOut,
            el(
              'div',
              {},
              button(text.signOuts.here, () => onSignOut(false)),
              button(text.signOuts.everywhere, () => onSignOut(true)),
            ),
            'out',
          )
        : button(text.signOut, () => onSignOut(false), { class: 'quiet' }),
    ),
  );
}

function accountSwitch(
  account: string,
  accounts: readonly string[],
  onAccount: (account: string) => void,
): HTMLElement {
  const choose = el(
    'select',
    { 'aria-label': text.account, onchange: () => onAccount(choose.value) },
    ...accounts.map((each) => el('option', { value: each }, each)),
  );
  choose.value = account;
  return choose;
}

/** The language that the page speaks from now on, in this browser. */
export function languageSwitch(): HTMLElement {
  const choose = el(
    'select',
    {
      id: 'language',
      'aria-label': text.language.label,
      onchange: () => {
        remember('language', choose.value);
        location.reload();
      },
    },
    el('option', { value: '' }, text.language.auto),
    ...Object.entries(languages).map(([id, name]) => el('option', { value: id, lang: id }, name)),
  );
  choose.value = chosenLanguage ?? '';
  return choose;
}

function themeSwitch(): HTMLElement {
  const { label, ...names } = text.theme;
  const choose = select(names, {
    id: 'theme',
    'aria-label': label,
    onchange: () => {
      remember('theme', choose.value);
      showTheme();
    },
  });
  choose.value = chosenTheme();
  return choose;
}
