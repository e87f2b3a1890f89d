import { loginWith } from '../state/key.ts';
import type { Session } from '../state/session.ts';
import { failureOf } from './headers.ts';
import type { Failure } from './protocol.ts';

export type Asked<Result> = { readonly result: Result } | { readonly failure: Failure };

/**
 * The result of a short answer, its numbers as text, so that no digit is lost; or why there is none.
 * @param body absent: the path takes GET; a file goes as it is, as of this type
 */
export async function asked<Result>(
  path: string,
  { key }: Session,
  body?: object,
  { type = 'application/json', signal }: { readonly type?: string; readonly signal?: AbortSignal } = {},
): Promise<Asked<Result>> {
  const { headers, credentials } = loginWith(key);
  let response: Response;
  let json: string;
  try {
    response = await fetch(path, {
      cache: 'no-store',
      credentials,
      headers: { ...headers, ...(body && { 'content-type': type }) },
      ...(body && { method: 'POST', body: body instanceof Blob ? body : JSON.stringify(body) }),
      ...(signal && { signal }),
    });
    if (!response.ok) return { failure: await failureOf(response) };
    json = await response.text();
  } catch {
    return { failure: { reason: 'unreachable', detail: '', requestId: '', rows: 0 } };
  }
  return JSON.parse(digitsKept(json));
}

/** JSON with its figures as text. Only the quotation mark that ends a key has a letter before it and a colon behind. */
export function digitsKept(json: string): string {
  return json.replace(/(?<=\w)":(-?\d[\d.]*)/g, '":"$1"');
}
