import { loginWith } from '../state/key.ts';
import type { Session } from '../state/session.ts';
import { text } from '../words/text.ts';
import { failureOf } from './headers.ts';
import type { Failure } from './protocol.ts';

/** The result of a short answer, its numbers as text, so that no digit is lost; or why there is none. */
export async function asked<Result>(
  path: string,
  body: unknown,
  { key }: Session,
): Promise<{ readonly result: Result } | { readonly failure: Pick<Failure, 'reason' | 'detail'> }> {
  try {
    const { headers, credentials } = loginWith(key);
    const response = await fetch(path, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      cache: 'no-store',
      credentials,
    });
    if (!response.ok) return { failure: await failureOf(response) };
    return JSON.parse((await response.text()).replace(/":(-?\d[\d.]*)/g, '":"$1"'));
  } catch {
    return { failure: { reason: 'unreachable', detail: text.problems.unreachable.title } };
  }
}
