/** The login token of this tab, and what it opens. It is kept until the tab is closed, and never in an address. */
export interface Session {
  readonly token: string;
  /** The account that it is of. */
  readonly account: string;
  /** Families that it opens. */
  readonly families: readonly string[];
  /** `yyyy-mm-dd` where the days are counted. */
  readonly today: string;
  /** Whether the service takes the optional fields of a request: filters, comparison, weeks and months. */
  readonly optional: boolean;
}

const key = 'adtally-token';

/** In a frame the browser may refuse to keep anything: the token is then kept as long as the document. */
let inMemory = '';
let storage: Storage | undefined;
try {
  storage = sessionStorage;
} catch {
  // As above.
}

export function keptToken(): string {
  return storage?.getItem(key) ?? inMemory;
}

export function keepToken(token: string): void {
  inMemory = token;
  storage?.setItem(key, token);
}

export function forgetToken(): void {
  inMemory = '';
  storage?.removeItem(key);
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
  return token.trim();
}
