import { brand } from './parts/brand.ts';
import { button, el, segments } from './parts/dom.ts';
import { Notice } from './parts/notice.ts';
import { showTheme } from './parts/theme.ts';
import { accountsOfPerson } from './rows/login.ts';
import { families } from './state/fields.ts';
import { accountOf, type Key, keyOf } from './state/key.ts';
import { remembered } from './state/memory.ts';
import {
  failureOfSignIn,
  forgetKey,
  keepKey,
  keptKey,
  type Session,
  signOut,
  tokenOfLink,
} from './state/session.ts';
import { fromHash, ofFamily, ofOtherAccount, ofShown, type State, toHash, unreadIn } from './state/state.ts';
import { header } from './view/header.ts';
import { enter, signIn } from './view/sign-in.ts';
import { Workbench } from './view/workbench.ts';
import { wordOf } from './words/labels.ts';
import { language } from './words/locale.ts';
import { text } from './words/text.ts';

document.documentElement.lang = language;
document.title = text.documentTitle(brand().textContent ?? '');
showTheme();

const root = document.getElementById('app');
let bench: Workbench | undefined;
let session: Session | undefined;
/** Of the person who signed in at the provider. */
let accounts: readonly string[] = [];
/** Where the page speaks while there is no report. */
const notice = new Notice();
/** Of the last question whom to let in: what an earlier one comes to is not shown. */
let turn = 0;

/** Shows this instead of what was there, which asks nothing any more. */
function show(...elements: HTMLElement[]): void {
  turn++;
  notice.hide();
  bench?.close();
  bench = undefined;
  root?.replaceChildren(...elements);
}

/** The state of the address, in a family that the key opens. */
function stateOf(open: Session): State {
  const [first = families[0] ?? ''] = open.families;
  const state = fromHash(location.hash, first);
  const opened = open.families.includes(state.family) ? state : ofFamily(state, first);
  // An address that holds a state holds all of it, the usual columns too.
  return new URLSearchParams(location.hash.slice(1)).has('report') ? opened : withUsualColumns(opened);
}

/**
 * Takes up the state of the address, and what of it nobody can read. A step of the history says which account it was chosen for:
 * another has other names.
 */
function takeUp(open: Session): { state: State; unread: string[] } {
  const found = stateOf(open);
  const unread = unreadIn(location.hash, found);
  const state = [null, open.account].includes(history.state) ? found : ofOtherAccount(found);
  history.replaceState(open.account, '', toHash(state));
  return { state, unread };
}

/** With the columns that this person last chose for the report. */
function withUsualColumns(state: State): State {
  const metrics = remembered<string[]>(`metrics-${state.family}`, []).filter((id) =>
    state.metrics.includes(id),
  );
  return metrics.length ? ofShown({ ...state, metrics }) : state;
}

function leave(reason: string): void {
  forgetKey();
  session = undefined;
  show(signIn(reason, open));
  root?.querySelector<HTMLElement>('.sign-in a.primary, #token')?.focus();
}

/** A token or a session has ended: whoever had a session comes back to the same account. */
function end({ key }: Session): void {
  const ofPerson = accountOf(key) !== undefined;
  leave(ofPerson ? text.signIn.reasons.session : text.signIn.reasons.ended);
  if (ofPerson) keepKey(key);
}

async function signOff(everywhere: boolean): Promise<void> {
  const { here, everywhere: all, notOut, out } = text.signIn.reasons;
  if (!session || accountOf(session.key) === undefined) return leave(out);
  const isOut = await signOut(everywhere);
  leave(isOut ? (everywhere ? all : here) : notOut);
}

function open(entered: Session): void {
  // An answer may come when somebody else is signed in.
  const opened = { ...entered, onEnd: () => session === opened && end(opened) };
  keepKey(opened.key);
  session = opened;
  const { state, unread } = takeUp(opened);
  const made = new Workbench(opened, state, () => void openWith(opened.key));
  const report = segments(
    text.familiesLabel,
    'family',
    opened.families.map((family) => [family, wordOf(text.families, family)] as const),
    (family) => made.choose(withUsualColumns(ofFamily(fromHash(location.hash, family), family))),
  );
  report.element.classList.add('families');
  report.show(state.family);
  addEventListener('popstate', () => report.show(made.family));
  show(
    el('a', { class: 'skip', href: '#main', onclick: skip }, text.skip),
    header({
      family: opened.families.length > 1 ? report.element : undefined,
      account: opened.account,
      accounts: accountOf(opened.key) === undefined ? [] : accounts,
      onAccount: (account) => void openWith(keyOf(account)),
      onSignOut: (everywhere) => void signOff(everywhere),
    }),
    made.element,
  );
  bench = made;
  made.tellUnread(unread);
}

/** The address holds the state, so that a link to a part of the page would lose it. */
function skip(event: Event): void {
  event.preventDefault();
  const main = document.getElementById('main');
  main?.setAttribute('tabindex', '-1');
  main?.focus();
}

/** @param linked the token of a link: another account than that of this tab is opened only when its reader says so */
async function start(linked = tokenOfLink()): Promise<void> {
  const asked = ++turn;
  const failure = failureOfSignIn();
  const kept = keptKey();
  const again = () => void start(linked);
  if (kept ? accountOf(kept) !== undefined : !linked) {
    const found = await accountsOfPerson();
    if (asked !== turn) return;
    if ('failure' in found) {
      tell().fail(found.failure, again, text.signIn.unknown);
      notice.element.append(button(text.signIn.orToken, () => leave('')));
      return;
    }
    accounts = found.result;
  }
  if (!linked && !kept) return choose(failure);
  const key = linked || kept;
  if (!kept) keepKey(key);
  const entered = await enter(key);
  if (asked !== turn) return;
  if ('failure' in entered) {
    if (entered.failure.reason !== 'unauthorized') return tell().fail(entered.failure, again);
    if (linked && kept && linked !== kept) return start('');
    if (accountOf(key) === undefined) return leave(text.signIn.reasons.ended);
    // Another person may have signed in meanwhile.
    forgetKey();
    return choose(failure, text.signIn.reasons.session);
  }
  if (key === kept || !kept) return open(entered);
  const before = await enter(kept);
  if (asked !== turn) return;
  if ('failure' in before) {
    if (before.failure.reason === 'unauthorized') return open(entered);
    return tell().fail(before.failure, again);
  }
  if (before.account === entered.account) return open(entered);
  history.replaceState(entered.account, '', location.hash);
  const { title, detail, stay, change } = text.signIn.other;
  tell().say({ title, detail: detail(before.account, entered.account) });
  const staying = button(stay(before.account), () => open(before), { class: 'primary' });
  notice.element.append(
    staying,
    button(change(entered.account), () => open(entered)),
  );
  staying.focus();
}

/** Opens an account of the person who signed in: the only one, or the one that they choose. */
function choose(failure: string, otherwise = ''): void {
  const [only, ...others] = accounts;
  if (only === undefined) {
    const failures: Partial<Record<string, string>> = text.signIn.failures;
    leave(failure ? (failures[failure] ?? text.signIn.failures.failed) : otherwise);
  } else if (others.length === 0) {
    void openWith(keyOf(only));
  } else {
    tell().say(text.signIn.choose);
    notice.element.append(...accounts.map((account) => button(account, () => void openWith(keyOf(account)))));
    notice.element.querySelector('button')?.focus();
  }
}

async function openWith(key: Key): Promise<void> {
  tell().say({ title: text.progress.asking, detail: '' });
  const asked = turn;
  const entered = await enter(key);
  if (asked !== turn) return;
  if (!('failure' in entered)) return open(entered);
  const { ended, session } = text.signIn.reasons;
  if (entered.failure.reason === 'unauthorized') return leave(accountOf(key) === undefined ? ended : session);
  tell().fail(entered.failure, () => void openWith(key));
}

function tell(): Notice {
  const heading = el('h1', { class: 'unseen' }, text.title);
  show(el('main', { id: 'main', class: 'door' }, heading, notice.element));
  return notice;
}

addEventListener('popstate', () => {
  if (new URLSearchParams(location.hash.slice(1)).has('token')) void start();
  else if (bench && session) {
    const { state, unread } = takeUp(session);
    bench.go(state);
    bench.tellUnread(unread);
  }
});

void start();
