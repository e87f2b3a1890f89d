import { InputError } from '../input/input-error.ts';

const hourMs = 3_600_000;
const parts = /\{(yyyy|MM|dd|HH)\}/g;

/** Whether a pattern has a place for a date, such as `{yyyy}/{MM}/{dd}`. */
export const hasDate = (pattern: string): boolean => pattern.search(parts) >= 0;

/**
 * The patterns that a pattern with a date stands for, of all hours from `sinceMs` ago to a day ahead, in UTC: who writes may be
 * in a zone that is ahead.
 * @throws {InputError} for a date that does not begin with its year
 */
export function dated(pattern: string, sinceMs: number, now: Date): string[] {
  const named = new Set([...pattern.matchAll(parts)].map(([, part]) => part));
  const order = ['yyyy', 'MM', 'dd', 'HH'];
  const smallest = order.findLastIndex((part) => named.has(part));
  const missing = order.slice(0, smallest).find((part) => !named.has(part));
  if (missing) throw new InputError(`${pattern}: has {${order[smallest]}} and no {${missing}}`);
  const found = new Set<string>();
  for (let at = now.getTime() - sinceMs; at <= now.getTime() + 24 * hourMs; at += hourMs) {
    const [yyyy = '', MM = '', dd = '', HH = ''] = new Date(at).toISOString().split(/[-T:]/);
    const values: Readonly<Record<string, string>> = { yyyy, MM, dd, HH };
    found.add(pattern.replace(parts, (_, part: string) => values[part] ?? ''));
  }
  return [...found];
}
