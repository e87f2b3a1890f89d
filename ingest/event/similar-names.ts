/** `; did you mean Cost or Costs?` of names that are written much like this one; empty where there are none. */
export function suggestion(name: string, names: readonly string[]): string {
  const wanted = plain(name);
  const most = Math.max(1, Math.floor(wanted.length / 4));
  const found = names.filter((each) => edits(wanted, plain(each)) <= most).slice(0, 3);
  return found.length > 0 ? `; did you mean ${found.map(shownName).join(' or ')}?` : '';
}

/** With quotes around it where blanks begin or end it, which nobody would see. */
export const shownName = (name: string): string => (name === name.trim() ? name : JSON.stringify(name));

const plain = (name: string) => name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');

/** Letters to add, leave out or change to make one text of another (Levenshtein). */
function edits(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, n) => n);
  for (const [n, letter] of [...from].entries()) {
    const next = [n + 1];
    for (let m = 0; m < to.length; m++) {
      const change = (row[m] ?? 0) + (letter === to[m] ? 0 : 1);
      next.push(Math.min(change, (row[m + 1] ?? 0) + 1, (next[m] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
