import { AdtallyError, ConnectionError, IncompleteAnswer, TimeoutError } from './errors.ts';

export interface AnswerOptions {
  readonly timeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly tries: number;
  readonly fetch: typeof fetch;
  readonly signal?: AbortSignal;
}

/** Between two tries: the first pause where the service does not say how long, and the longest, whatever it says. */
const firstPauseMs = 500;
const maxPauseMs = 60_000;
/** A timer that is set for longer, or for ever, fires at once. */
const maxTimerMs = 2 ** 31 - 1;

/** The bytes of an answer as they come; ends only when all of them have come. @throws as `Adtally.rows` */
export async function* pieces(
  url: string,
  init: RequestInit,
  options: AnswerOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const giveUp = new AbortController();
  const onAbort = () => giveUp.abort(options.signal?.reason);
  options.signal?.addEventListener('abort', onAbort);
  if (options.signal?.aborted) onAbort();
  try {
    // What is no request is not sent, and is no connection that broke.
    if (!/^https?:/.test(new Request(url, { ...init, body: null }).url)) {
      throw new TypeError(`not a URL of HTTP: ${url}`);
    }
    // Most redirects would be followed by GET, and those to another origin without the token.
    const asked: RequestInit = { ...init, redirect: 'manual', signal: giveUp.signal };
    const response = await again(options.tries, giveUp.signal, () =>
      within(options.timeoutMs, giveUp, () => begin(url, asked, options.fetch)),
    );
    const reader = response.body?.getReader();
    const length = lengthOf(response);
    let bytes = 0;
    while (reader) {
      const { done, value } = await within(options.idleTimeoutMs, giveUp, () =>
        reader.read().catch(brokeOff),
      );
      if (done) break;
      bytes += value.length;
      yield value;
    }
    if (length !== undefined && bytes !== length) {
      throw new IncompleteAnswer(`the answer has ${bytes} of ${length} bytes`);
    }
  } catch (error) {
    throw options.signal?.aborted ? options.signal.reason : error;
  } finally {
    options.signal?.removeEventListener('abort', onAbort);
    giveUp.abort();
  }
}

/** The answer that is not refused, once it has begun. */
async function begin(url: string, init: RequestInit, fetch: AnswerOptions['fetch']): Promise<Response> {
  const response = await fetch(url, init).catch(noAnswer);
  if (response.status !== 200) throw await refusalOf(response);
  const type = response.headers.get('content-type') ?? 'no content-type';
  // A page of a proxy, such as one to sign in; without rows, it would be an empty report.
  if (type.split(';')[0]?.trim().toLowerCase() !== new Headers(init.headers).get('accept')) {
    await response.body?.cancel();
    throw new AdtallyError(200, { detail: `what answered is not adtally: it sent ${type}` });
  }
  return response;
}

/** Works until that does not fail with what may pass, `tries` times in all. */
export async function again<T>(tries: number, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await work();
    } catch (error) {
      if (tried >= tries || !isPassing(error)) throw error;
      const asked = error instanceof AdtallyError ? error.retryAfter : undefined;
      const growing = firstPauseMs * 1.5 ** (tried - 1) * (1 + Math.random() / 4);
      await pause(Math.min(maxPauseMs, asked === undefined ? growing : asked * 1000), signal);
    }
  }
}

/** Whether the same request may succeed in a moment. */
function isPassing(failure: unknown): boolean {
  if (!(failure instanceof AdtallyError)) {
    return [ConnectionError, IncompleteAnswer, TimeoutError].some((passing) => failure instanceof passing);
  }
  return (
    [408, 429, 502, 503, 504].includes(failure.status) ||
    ['internal_error', 'store_unavailable'].includes(failure.code)
  );
}

// A TypeError is what fetch has for a connection that is refused or breaks, and for one that Node waits for no longer.

function noAnswer(error: unknown): never {
  if (!(error instanceof TypeError)) throw error;
  requireInTime(error);
  const { message, code } = Object(error.cause);
  throw new ConnectionError(`no answer began: ${message || code || error.message}`, { cause: error });
}

function brokeOff(error: unknown): never {
  if (!(error instanceof TypeError)) throw error;
  requireInTime(error);
  throw new IncompleteAnswer('the answer broke off', { cause: error });
}

function requireInTime(error: TypeError): void {
  const { code } = Object(error.cause);
  if (code !== 'UND_ERR_HEADERS_TIMEOUT' && code !== 'UND_ERR_BODY_TIMEOUT') return;
  throw new TimeoutError(`the service sent nothing for as long as fetch waits (${code})`, { cause: error });
}

async function refusalOf(response: Response): Promise<AdtallyError> {
  // A proxy may have written it, or cut it: its status counts nevertheless.
  const told: unknown = await response.json().catch(() => undefined);
  const header = (name: string) => response.headers.get(name) ?? '';
  const after = header('retry-after');
  const isHidden = response.type === 'opaqueredirect';
  const place = isHidden ? 'an address that the browser hides' : header('location');
  // A date counts from the `Date` of the same answer: our clock may be another.
  const seconds = /^\d+$/.test(after)
    ? Number(after)
    : (Date.parse(after) - Date.parse(header('date'))) / 1000;
  const problem = header('content-type').startsWith('application/problem+json') ? Object(told) : {};
  const moved = place && { detail: `HTTP status ${response.status}: redirects to ${place}` };
  return new AdtallyError(response.status, moved || problem, seconds >= 0 ? seconds : undefined);
}

/** Of a body that is not packed, which fetch would have unpacked. */
function lengthOf({ headers }: Response): number | undefined {
  const length = headers.get('content-length');
  return length === null || headers.has('content-encoding') ? undefined : Number(length);
}

async function within<T>(ms: number, giveUp: AbortController, work: () => Promise<T>): Promise<T> {
  const late = new TimeoutError(`the service sent nothing for ${ms} ms`);
  const timer = setTimeout(() => giveUp.abort(late), Math.min(ms, maxTimerMs));
  try {
    return await work();
  } catch (error) {
    // As after a timeout of our own, a report is not asked for again.
    if (error instanceof TimeoutError) giveUp.abort(error);
    throw giveUp.signal.aborted && giveUp.signal.reason === late ? late : error;
  } finally {
    clearTimeout(timer);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}
