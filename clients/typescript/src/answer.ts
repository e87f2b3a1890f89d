import { AdtallyError, IncompleteAnswer, TimeoutError } from './errors.ts';

export interface AnswerOptions {
  readonly timeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly tries: number;
  readonly fetch: typeof fetch;
  readonly signal?: AbortSignal;
}

/** Waits between tries when the service does not say how long. */
const firstPauseMs = 500;
const maxPauseMs = 60_000;

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
    const response = await begin(url, { ...init, signal: giveUp.signal }, options, giveUp);
    const reader = response.body?.getReader();
    const length = lengthOf(response);
    let bytes = 0;
    while (reader) {
      const { done, value } = await within(options.idleTimeoutMs, giveUp, () => reader.read());
      if (done) break;
      bytes += value.length;
      yield value;
    }
    if (length !== undefined && bytes !== length) {
      throw new IncompleteAnswer(`the answer has ${bytes} of ${length} bytes`);
    }
  } catch (error) {
    if (options.signal?.aborted) throw options.signal.reason;
    // What fetch throws when a connection breaks.
    throw error instanceof TypeError ? new IncompleteAnswer('the answer broke off', { cause: error }) : error;
  } finally {
    options.signal?.removeEventListener('abort', onAbort);
    giveUp.abort();
  }
}

/** The answer that is not refused, once it has begun. */
async function begin(
  url: string,
  init: RequestInit,
  options: AnswerOptions,
  giveUp: AbortController,
): Promise<Response> {
  for (let tried = 1; ; tried++) {
    const failure = await within(options.timeoutMs, giveUp, () => options.fetch(url, init))
      .then(async (response) => (response.ok ? response : await refusalOf(response)))
      .catch((error: unknown) => {
        if (giveUp.signal.aborted || !(error instanceof TypeError)) throw error;
        return error;
      });
    if (!(failure instanceof Error)) return failure;
    if (tried >= options.tries || !isPassing(failure)) throw failure;
    const asked = failure instanceof AdtallyError ? failure.retryAfter : undefined;
    const pauseMs = Math.min(maxPauseMs, firstPauseMs * 1.5 ** (tried - 1)) * (1 + Math.random() / 4);
    await pause(asked === undefined ? pauseMs : asked * 1000, giveUp.signal);
  }
}

/** Whether the same request may succeed in a moment. */
function isPassing(failure: Error): boolean {
  if (!(failure instanceof AdtallyError)) return true;
  return (
    [429, 502, 503, 504].includes(failure.status) ||
    ['internal_error', 'store_unavailable'].includes(failure.code)
  );
}

async function refusalOf(response: Response): Promise<AdtallyError> {
  const text = await response.text();
  const after = response.headers.get('retry-after');
  const retryAfter = after !== null && /^\d+$/.test(after) ? Number(after) : undefined;
  const isProblem = response.headers.get('content-type')?.startsWith('application/problem+json');
  return new AdtallyError(response.status, isProblem ? JSON.parse(text) : {}, retryAfter);
}

/** Of a body that is not packed, which fetch would have unpacked. */
function lengthOf({ headers }: Response): number | undefined {
  const length = headers.get('content-length');
  return length === null || headers.has('content-encoding') ? undefined : Number(length);
}

async function within<T>(ms: number, giveUp: AbortController, work: () => Promise<T>): Promise<T> {
  const late = new TimeoutError(`the service sent nothing for ${ms} ms`);
  const timer = setTimeout(() => giveUp.abort(late), ms);
  try {
    return await work();
  } catch (error) {
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
