import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import { InputChanged } from '../input/input-error.ts';
import { KeysFailed } from './keys/keys.ts';
import type { ObjectService, ObjectVersion, Refusal } from './service.ts';
import { bodyOf, ConnectionFailed, send, textOfBody } from './wire/http.ts';
import { Patience, type PatienceOptions } from './wire/patience.ts';
import { textOf, xmlOf } from './wire/xml.ts';

/** Small objects are read once to see whether they are new and once to be loaded: so many bytes of them are kept meanwhile. */
const keptBytes = 64 << 20;
/** What is read of an answer that is no success. */
const longestRefusal = 64 << 10;

/** The objects of a bucket. Errors do not name it: the caller does. Attempts that may go better are made again. */
export class Bucket {
  /** Its address, with a slash at its end: `s3://BUCKET/`. */
  readonly name: string;
  readonly #service: ObjectService;
  readonly #options: PatienceOptions;
  /** Pieces of objects, by key, etag and place. */
  readonly kept = new LRUCache<string, Buffer>({
    maxSize: keptBytes,
    sizeCalculation: ({ length }) => length + 1,
  });

  constructor(name: string, service: ObjectService, options: PatienceOptions) {
    this.name = name;
    this.#service = service;
    this.#options = options;
  }

  /** The objects whose keys begin with a prefix. @param flat only keys without another slash behind it */
  async *list(prefix: string, flat: boolean, signal?: AbortSignal): AsyncGenerator<ObjectVersion> {
    for (let from: string | undefined, last = false; !last; last = from === undefined) {
      const listing = { prefix, flat, ...(from !== undefined && { from }) };
      const page = await this.#retrying(async () => {
        const answer = await this.#ask('GET', () => this.#service.listUrl(listing), {}, signal);
        return this.#service.pageOf(await textOfBody(answer, signal));
      }, signal);
      yield* page.objects;
      from = page.next;
    }
  }

  /** What an object is now; undefined where there is no such object. */
  async find(key: string, signal?: AbortSignal): Promise<ObjectVersion | undefined> {
    const url = () => this.#service.objectUrl(key);
    try {
      const answer = await this.#retrying(() => this.#ask('HEAD', url, {}, signal), signal);
      // It has no body, but keeps its connection, and with it the process, until somebody has read it.
      const { headers } = answer.resume();
      // Of Azure, in an account with a hierarchical namespace.
      const isFolder = headers['x-ms-resource-type'] === 'directory';
      if (isFolder || headers['x-ms-meta-hdi_isfolder'] === 'true') return undefined;
      const size = Number(headers['content-length']);
      if (!headers.etag || !Number.isSafeInteger(size))
        throw new Error('the storage tells no size or no ETag');
      return { key, size, etag: bare(headers.etag), modified: new Date(headers['last-modified'] ?? 0) };
    } catch (error) {
      if (error instanceof NoSuchObject) return undefined;
      throw error;
    }
  }

  /**
   * The bytes of an object from `start` up to `end`, which is not part of it. Where the connection breaks they go on behind
   * what has come.
   * @throws {InputChanged} where the object is another one by now, or none
   */
  async *bytes(
    { key, etag, size }: ObjectVersion,
    start: number,
    end: number,
    signal?: AbortSignal,
  ): AsyncGenerator<Buffer> {
    const last = Math.min(end, size);
    const url = () => this.#service.objectUrl(key);
    const patience = new Patience(this.#options);
    for (let at = start; at < last; ) {
      try {
        const headers = { 'if-match': `"${etag}"`, range: `bytes=${at}-${last - 1}` };
        const answer = await this.#ask('GET', url, headers, signal);
        requireRange(answer, { etag, size, at });
        const from = at;
        for await (const piece of bodyOf(answer, signal)) {
          at += piece.length;
          if (at > last) throw new Error('the storage sends more than it was asked for');
          patience.progress();
          yield piece;
        }
        if (at === from) throw new ConnectionFailed('the answer is empty');
      } catch (error) {
        if (error instanceof NoSuchObject) throw changed();
        await this.#wait(patience, error, signal);
      }
    }
  }

  async #retrying<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const patience = new Patience(this.#options);
    for (;;) {
      try {
        return await work();
      } catch (error) {
        await this.#wait(patience, error, signal);
      }
    }
  }

  async #wait(patience: Patience, error: unknown, signal: AbortSignal | undefined): Promise<void> {
    if (error instanceof KeysFailed) return patience.afterFailure(error, signal);
    if (!(error instanceof ConnectionFailed || error instanceof Busy)) throw error;
    const text = `the storage does not answer: ${error.message}`;
    await patience.afterFailure(
      new Error(text, { cause: error }),
      signal,
      error instanceof Busy ? error.leastMs : 0,
    );
  }

  /** @throws {Busy}, {@link NoSuchObject}, {@link InputChanged}, or an error that says why the store refuses */
  async #ask(
    method: 'GET' | 'HEAD',
    url: () => URL,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<IncomingMessage> {
    for (let again = false; ; again = true) {
      const at = url();
      const answer = await send(method, at, await this.#service.headers(method, at, headers), signal);
      if (succeeded(answer)) return answer;
      const refusal = refusalOf(answer, await textOfBody(answer, signal, longestRefusal));
      // An answer to HEAD has no text that says why.
      const { code } = method === 'HEAD' ? await this.#reason(at, refusal, signal) : refusal;
      if (again || !(await this.#service.mayPassNow?.({ ...refusal, code }))) {
        throw this.#failure({ ...refusal, code }, answer);
      }
    }
  }

  async #reason(url: URL, refusal: Refusal, signal: AbortSignal | undefined): Promise<Refusal> {
    if (refusal.code !== '') return refusal;
    const headers = await this.#service.headers('GET', url, { range: 'bytes=0-0' });
    const answer = await send('GET', url, headers, signal);
    if (!succeeded(answer)) return refusalOf(answer, await textOfBody(answer, signal, longestRefusal));
    answer.destroy();
    return refusal;
  }

  #failure({ status, code }: Refusal, { headers }: IncomingMessage): Error {
    const said = code ? `${status} ${code}` : `${status}`;
    if (status === 408 || status === 429 || status >= 500) {
      return new Busy(said, Number(headers['retry-after'] ?? 0) * 1000);
    }
    if (status === 412) return changed();
    if (/^NoSuchBucket$|^ContainerNotFound$/.test(code)) {
      return new Error(`there is no ${this.#service.word} ${this.name}`);
    }
    if (status === 404) return new NoSuchObject('there is no such object');
    return new Error(`${advice(status, code)} (${said})`);
  }
}

/** The store asks to be asked again later. */
class Busy extends Error {
  readonly leastMs: number;

  constructor(message: string, leastMs: number) {
    super(message);
    this.leastMs = Number.isFinite(leastMs) ? leastMs : 0;
  }
}

class NoSuchObject extends Error {}

/** In words that a person can act on. */
function advice(status: number, code: string): string {
  if (/Expired/.test(code)) return 'the keys have expired';
  if (/InvalidAccessKeyId|SignatureDoesNotMatch|AuthenticationFailed|InvalidToken|InvalidSecurity/.test(code))
    return 'the storage does not accept the keys';
  if (/^(InvalidObjectState|BlobArchived|BlobBeingRehydrated)$/.test(code))
    return 'the object is in an archive: restore it first';
  if (code === 'RequestTimeTooSkewed') return 'the clock of this machine is wrong';
  if (status === 401 || status === 403) return 'the keys do not give access to it';
  if (status >= 300 && status < 400)
    return 'the storage sends on to another address, which is not followed: is the region or --endpoint right?';
  return 'the storage refuses the request';
}

function refusalOf({ statusCode: status = 0, headers }: IncomingMessage, text: string): Refusal {
  const region = headers['x-amz-bucket-region'];
  // Of Azure a header says it, also to HEAD.
  const code = headers['x-ms-error-code'] ?? codeIn(text);
  return {
    status,
    code: String(code).replace(/\W/g, '').slice(0, 64),
    ...(region && { region: String(region) }),
  };
}

function codeIn(text: string): string {
  try {
    return textOf(xmlOf(text, 'Error'), 'Code');
  } catch {
    // What stands before a store answers in another way.
    return '';
  }
}

const succeeded = ({ statusCode }: IncomingMessage) => statusCode === 200 || statusCode === 206;

/** @throws {InputChanged}, or an error where these are not the bytes that were asked for */
function requireRange(
  answer: IncomingMessage,
  { etag, size, at }: { readonly etag: string; readonly size: number; readonly at: number },
): void {
  const { statusCode, headers } = answer;
  const refuse = (error: Error) => {
    answer.destroy();
    throw error;
  };
  // There are stores that do not look at If-Match.
  if (headers.etag && bare(headers.etag) !== etag) refuse(changed());
  const [, from, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(headers['content-range'] ?? '') ?? [];
  const wholeOne = statusCode === 200 && at === 0;
  if (!wholeOne && Number(from) !== at) {
    refuse(new Error('the storage does not answer with the range that it was asked for'));
  }
  const found = Number(wholeOne ? (headers['content-length'] ?? size) : total);
  if (found !== size) refuse(changed());
}

const changed = () => new InputChanged('was changed while it was read');

const bare = (etag: string) => etag.replace(/^(?:W\/)?"|"$/g, '');
