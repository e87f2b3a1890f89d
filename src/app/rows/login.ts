import { families } from '../state/fields.ts';
import type { Key } from '../state/key.ts';
import type { Session } from '../state/session.ts';
import { send } from './asked.ts';
import { clockOf, factsOf, failureOf } from './headers.ts';
import type { Asked, Failure } from './protocol.ts';

/**
 * Finds out what a key opens: it asks each family for its one largest row of all time.
 * A family without rows is left out where another one has some.
 */
export async function logIn(key: Key): Promise<Session | { failure: Failure }> {
  const answers = await Promise.all(families.map((family) => probe(family, key)));
  const opened = answers.flatMap((answer) => ('result' in answer ? [answer.result] : []));
  const failures = answers.flatMap((answer) => ('failure' in answer ? [answer.failure] : []));
  // Only "not this family" is an answer to what the key opens.
  const failure =
    failures.find(({ reason }) => reason !== 'unauthorized') ?? (opened[0] ? undefined : failures[0]);
  const [first] = opened;
  if (failure || !first) return { failure: failure ?? { reason: 'failed' } };
  const { account, today, clock } = first;
  const filled = opened.filter(({ hasRows }) => hasRows);
  const open = (filled.length ? filled : opened).map(({ family }) => family);
  return { key, account, today, clock, families: open };
}

interface Probed extends Pick<Session, 'account' | 'today' | 'clock'> {
  readonly family: string;
  readonly hasRows: boolean;
}

async function probe(family: string, key: Key): Promise<Asked<Probed>> {
  const body = { start_time: '1970-01-01', end_time: '2148-12-31', limit: 1 };
  const answer = await send(`/v1/${family}`, { key }, { body, accept: 'application/x-ndjson' });
  if ('failure' in answer) return answer;
  const { headers } = answer.result;
  const { account, asked } = factsOf(headers);
  const clock = clockOf(asked, headers.get('date'));
  const today = asked.slice(0, 10);
  try {
    const hasRows = (await answer.result.text()) !== '';
    return { result: { family, account, today, clock, hasRows } };
  } catch {
    return { failure: { reason: 'broken' } };
  }
}

/** The accounts of the person whose session is in a cookie; none without one, and where nobody can sign in without a token. */
export async function accountsOfPerson(): Promise<Asked<readonly string[]>> {
  if (!document.querySelector('template#sign-in')) return { result: [] };
  try {
    const response = await fetch('/auth/session', { cache: 'no-store' });
    if (!response.ok) return { failure: await failureOf(response) };
    const { accounts } = (await response.json()) as { accounts: string[] };
    return { result: accounts };
  } catch (error) {
    return { failure: { reason: error instanceof SyntaxError ? 'other' : 'unreachable' } };
  }
}
