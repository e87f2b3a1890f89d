import { accountOf, type Key } from '../state/key.ts';
import { failureOf } from './headers.ts';
import type { Asked } from './protocol.ts';

/** Who asks. */
interface Asking {
  readonly key: Key;
  /**
   * To be called when the service takes the key no more. Absent where nothing is open yet, and in the worker, whose failures
   * the page looks at.
   */
  readonly onEnd?: () => void;
}

interface Question {
  /** Absent: the path takes GET; a file goes as it is, as of this type. */
  readonly body?: unknown;
  readonly type?: string;
  readonly accept?: string;
  readonly signal?: AbortSignal;
}

/** The answer of the service as soon as its head has come, or why it did not come. */
export async function send(
  url: string,
  { key, onEnd }: Asking,
  { body, type = 'application/json', accept = 'application/json', signal }: Question,
): Promise<Asked<Response>> {
  const account = accountOf(key);
  try {
    const response = await fetch(url, {
      cache: 'no-store',
      signal,
      credentials: account === undefined ? 'omit' : 'same-origin',
      headers: {
        ...(account === undefined
          ? { authorization: `Bearer ${key}` }
          : { 'adtally-account': encodeURIComponent(account) }),
        ...(body !== undefined && { 'content-type': type }),
        accept,
      },
      ...(body !== undefined && {
        method: 'POST',
        body: body instanceof Blob ? body : JSON.stringify(body),
      }),
    });
    // A proxy may answer with a page of its own.
    if (response.ok && !response.headers.get('content-type')?.startsWith(accept))
      return { failure: { reason: 'other' } };
    if (response.ok) return { result: response };
    const failure = await failureOf(response);
    if (failure.reason === 'unauthorized') onEnd?.();
    return { failure };
  } catch {
    return { failure: { reason: 'unreachable' } };
  }
}

/** The result of a short answer, its numbers as text, so that no digit is lost; or why there is none. */
export async function asked<Result>(
  path: string,
  session: Asking,
  body?: object,
  options: Pick<Question, 'type' | 'signal'> = {},
): Promise<Asked<Result>> {
  const answer = await send(path, session, { ...options, body });
  if ('failure' in answer) return answer;
  try {
    return JSON.parse(digitsKept(await answer.result.text()));
  } catch {
    return { failure: { reason: 'unreachable' } };
  }
}

/** JSON with its figures as text. Only the quotation mark that ends a key has a letter before it and a colon behind. */
export function digitsKept(json: string): string {
  return json.replace(/(?<=\w)":(-?\d[\d.]*)/g, '":"$1"');
}
