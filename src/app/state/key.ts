/** What lets requests in: a login token, or `account …`: an account of the person whose session is in a cookie. */
export type Key = string;

const ofAccount = 'account ';

export function keyOf(account: string): Key {
  return ofAccount + account;
}

/** The account of the person; undefined for a token. */
export function accountOf(key: Key): string | undefined {
  return key.startsWith(ofAccount) ? key.slice(ofAccount.length) : undefined;
}
