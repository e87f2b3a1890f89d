import leven from 'leven';

/** `; did you mean Cost or Costs?` of names that are written much like this one; empty where there are none. */
export function suggestion(name: string, names: readonly string[]): string {
  const wanted = plain(name);
  const most = Math.max(1, Math.floor(wanted.length / 4));
  const found = names.filter((each) => leven(wanted, plain(each)) <= most).slice(0, 3);
  return found.length > 0 ? `; did you mean ${found.map(shownName).join(' or ')}?` : '';
}

/** Cut, and with quotes around it where blanks begin or end it, which nobody would see, or what a terminal does not show is in it. */
export function shownName(name: string): string {
  const short = name.length > 100 ? `${name.slice(0, 100)}…` : name;
  if (short === short.trim() && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(short)) return short;
  const escaped = (unseen: string) => `\\u${unseen.codePointAt(0)?.toString(16).padStart(4, '0')}`;
  return JSON.stringify(short).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escaped);
}

/** The first of many names, of which a file may have any number. */
export const shownNames = (names: readonly string[]): string =>
  names.slice(0, 20).map(shownName).join(', ') + (names.length > 20 ? ', …' : '');

const plain = (name: string) => name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
