import type { Plan } from './plan.ts';

/** The parameters of the first and the last day that are read. */
export type DaysRead = readonly [first: string, last: string];
export const ofRange: DaysRead = ['first', 'last'];
export const ofCompared: DaysRead = ['compared_first', 'compared_last'];

/**
 * The owner and the days: every statement of a report reads through this one condition.
 * @param owner the column that holds the account
 */
export function ownedOn([first, last]: DaysRead, owner = 'account_id'): string {
  return `${owner} = {account:String} AND day BETWEEN {${first}:Date} AND {${last}:Date}`;
}

export const owned = ownedOn(ofRange);

/** The parameters of these conditions. */
export function dayParameters({ account, days, compared }: Plan): Record<string, string> {
  const before = compared?.days;
  return {
    account,
    first: days.first,
    last: days.last,
    ...(before && { compared_first: before.first, compared_last: before.last }),
  };
}
