import { brand } from '../parts/brand.ts';
import { el } from '../parts/dom.ts';
import { countdown } from '../parts/notice.ts';
import { logIn } from '../rows/login.ts';
import type { Failure } from '../rows/protocol.ts';
import { accountOf, type Key } from '../state/key.ts';
import { keepHash, type Session } from '../state/session.ts';
import { text } from '../words/text.ts';
import { languageSwitch } from './header.ts';

/** The form for the login token. @param reason why it is shown, where there is one */
export function signIn(reason: string, onSession: (session: Session) => void): HTMLElement {
  const said = el('p', { class: 'said', role: 'alert' }, reason);
  const input = el('input', {
    id: 'token',
    name: 'token',
    type: 'password',
    required: true,
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: 'adt_…',
    'aria-describedby': 'token-hint',
  });
  const submit = el('button', { class: 'primary' }, text.signIn.submit);
  let stop = () => {};
  const onsubmit = async (event: Event) => {
    event.preventDefault();
    stop();
    const token = input.value.replace(/\s/g, '');
    submit.disabled = true;
    submit.textContent = text.signIn.working;
    said.textContent = '';
    const session = await enter(token);
    if (!form.isConnected) return;
    submit.disabled = false;
    submit.textContent = text.signIn.submit;
    if (!('failure' in session)) return onSession(session);
    stop = tell(said, session.failure, () => form.requestSubmit());
    input.focus();
  };
  const form = el(
    'form',
    { onsubmit, class: 'sign-in' },
    el('div', { class: 'brand' }, brand()),
    el('h1', {}, text.signIn.heading),
    el('p', { class: 'lead' }, text.signIn.lead),
    said,
    ...provider(),
    el('label', { for: 'token' }, text.signIn.label),
    input,
    el('p', { id: 'token-hint', class: 'hint' }, text.signIn.hint),
    submit,
    el('p', { class: 'hint' }, text.signIn.kept),
    el('p', { class: 'hint ends' }, el('a', { href: '/docs' }, text.documentation), languageSwitch()),
  );
  return el('main', { id: 'main', class: 'door' }, form);
}

/** The way to the provider, which the service puts into the page. */
function provider(): HTMLElement[] {
  const template = document.querySelector<HTMLTemplateElement>('template#sign-in');
  const link = template?.content.querySelector('a')?.cloneNode(true);
  if (!(link instanceof HTMLElement)) return [];
  link.textContent = text.signIn.at(link.textContent ?? '');
  link.addEventListener('click', keepHash);
  return [link, el('p', { class: 'or' }, text.signIn.orToken)];
}

/** What the key opens. */
export async function enter(key: Key): Promise<Session | { failure: Failure }> {
  // Other characters of a token cannot stand in a header.
  if (accountOf(key) !== undefined || /^[\x21-\x7e]+$/.test(key)) return logIn(key);
  return { failure: { reason: 'unauthorized' } };
}

function tell(said: HTMLElement, failure: Failure, again: () => void): () => void {
  if (failure.reason === 'unauthorized') {
    said.textContent = text.signIn.reasons.wrong;
    return () => {};
  }
  const { title, detail } = text.problems[failure.reason];
  said.textContent = `${title}. ${detail}`;
  if (failure.reason !== 'limited') return () => {};
  const counter = el('span');
  said.append(' ', counter);
  return countdown(counter, failure.retrySeconds ?? 10, again);
}
