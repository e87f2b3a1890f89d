import type { Key } from './key.ts';

/** The clock where the days are counted. */
export interface Clock {
  readonly zone: string;
  /** Of UTC, now, in ms; moments before a change to or from summer time are told by it, too. */
  readonly ahead: number;
}

/** The key of this tab, and what it opens. It is kept until the tab is closed, and never in an address. */
export interface Session {
  readonly key: Key;
  /** The account that it is of. */
  readonly account: string;
  /** Families that it opens. */
  readonly families: readonly string[];
  /** `yyyy-mm-dd` where the days are counted. */
  readonly today: string;
  /** The clock of the report, if it is known. */
  readonly clock?: Clock;
}

/** A session whose page is open. */
export interface Opened extends Session {
  /** To be called when the service takes its key no more. */
  readonly onEnd: () => void;
}

const place = 'adtally-token';
const chosenPlace = 'adtally-chosen';

/** In a frame the browser may refuse to keep anything: the key is then kept as long as the document. */
let inMemory = '';
let storage: Storage | undefined;
try {
  storage = sessionStorage;
} catch {
  // As above.
}

export function keptKey(): Key {
  return storage?.getItem(place) ?? inMemory;
}

export function keepKey(key: Key): void {
  inMemory = key;
  storage?.setItem(place, key);
}

export function forgetKey(): void {
  inMemory = '';
  storage?.removeItem(place);
}

/** Keeps what is chosen, and for which account, while its reader is away to sign in. */
export function keepHash(): void {
  storage?.setItem(chosenPlace, JSON.stringify([location.hash, history.state]));
}

/** Why an attempt to sign in ended as it did; the address is then what it was before the attempt. */
export function failureOfSignIn(): string {
  const fields = new URLSearchParams(location.hash.slice(1));
  const failure = fields.get('sign-in') ?? '';
  const chosen = storage?.getItem(chosenPlace);
  const [hash, account] = chosen ? (JSON.parse(chosen) as [string, string | null]) : ['', null];
  storage?.removeItem(chosenPlace);
  if (failure || !location.hash)
    history.replaceState(account, '', location.pathname + location.search + hash);
  return failure;
}

/** Ends the session of the cookie. @returns whether it did */
export async function signOut(everywhere: boolean): Promise<boolean> {
  const response = await fetch(`/auth/sign-out${everywhere ? '?everywhere' : ''}`, { method: 'POST' }).catch(
    () => undefined,
  );
  return response?.ok ?? false;
}

/** The token of a link (`#token=…`), which is taken out of the address and of the history at once. */
export function tokenOfLink(): string {
  const fields = new URLSearchParams(location.hash.slice(1));
  const token = fields.get('token') ?? '';
  if (fields.has('token')) {
    fields.delete('token');
    const rest = fields.size > 0 ? `#${fields}` : '';
    history.replaceState(null, '', location.pathname + location.search + rest);
  }
  // With a space it would be another kind of key.
  return token.replace(/\s/g, '');
}
