import { accountOf, type Key, loginWith } from '../state/key.ts';
import { pathOf } from '../state/request.ts';
import type { Session } from '../state/session.ts';
import { askedOf, type Shown } from './download.ts';

/** A link ends with the token that made it, and a person who signed in has none. */
export const makesLinks = (key: Key): boolean => accountOf(key) === undefined;

/** An address of the report as a workbook that needs no token, for a week. @throws where the service makes none */
export async function fileLink(shown: Shown, { key, today }: Session): Promise<string> {
  const { headers, credentials } = loginWith(key);
  const file = pathOf(shown.state).replace('/v1/', '/v1/links/').replace('/breakdowns/', '/');
  const answer = await fetch(`${file}.xlsx`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ ...askedOf(shown, today), totals: true }),
    credentials,
  });
  if (!answer.ok) throw new Error(`${answer.status}`);
  const { result } = await answer.json();
  return location.origin + result.link;
}
