import { again, pieces } from './answer.ts';
import { AdtallyError } from './errors.ts';

export interface SenderOptions {
  /** Of `adtally receive`, such as `https://events.example.com`. */
  readonly url: string;
  /** Of `adtally token create --for ingest NAME`. */
  readonly token: string;
  /** Until an answer comes; 310,000 unless given. */
  readonly timeoutMs?: number;
  /** How often a body is sent in all; 8 unless given. */
  readonly tries?: number;
  /** Instead of the global one. */
  readonly fetch?: typeof fetch;
}

export interface SendOptions {
  /** Of bytes; records are NDJSON. */
  readonly contentType?: string;
  /** Names the body beside its content: equal bytes count once under each key. */
  readonly key?: string;
  /** The stream of records that the body is a piece of, and the number of its first one, from 0; instead of a key. */
  readonly from?: { readonly channel: string; readonly offset: number };
  /** A mapping that the operator keeps. */
  readonly mapping?: string;
  readonly signal?: AbortSignal;
}

/**
 * What a body has become. `duplicates` counted before; `reasons` tell of the first `rejected` records; `replaced_by` is the load that
 * has replaced all events of a body that came before; `committed` is the offset that a channel goes on with.
 */
export interface Received {
  readonly load: string;
  readonly accepted: number;
  readonly rejected: number;
  readonly duplicates: number;
  readonly reasons: readonly string[];
  readonly visible_at: string;
  readonly replaced_by?: string;
  readonly committed?: number;
}

/** Sends events. A body counts once, however often it is sent, so it is sent again after whatever may pass. */
export class Sender {
  readonly #options: Required<SenderOptions>;

  constructor(options: SenderOptions) {
    this.#options = {
      timeoutMs: 310_000,
      tries: 8,
      fetch: (...request) => fetch(...request),
      ...options,
      url: options.url.replace(/\/+$/, ''),
    };
  }

  /**
   * Resolves when every report shows the events. When it rejects, keep the body and send the same bytes later. Counts and
   * amounts beyond 15 digits are to be text.
   * @throws {AdtallyError} when the service refuses, {ConnectionError}, {IncompleteAnswer} and {TimeoutError} after the last try
   */
  async send(
    events: Iterable<Readonly<Record<string, unknown>>> | Uint8Array,
    {
      contentType = 'application/x-ndjson',
      key,
      from,
      mapping,
      signal = new AbortController().signal,
    }: SendOptions = {},
  ): Promise<Received> {
    const { url, token, tries, timeoutMs, fetch } = this.#options;
    const body = events instanceof Uint8Array ? new Uint8Array(events) : [...events].map(lineOf).join('');
    const query = mapping === undefined ? '' : `?mapping=${encodeURIComponent(mapping)}`;
    const init = {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': contentType,
        accept: 'application/json',
        ...(key !== undefined && { 'idempotency-key': key }),
        ...(from && { channel: from.channel, offset: `${from.offset}` }),
      },
      body,
    };
    const options = { timeoutMs, idleTimeoutMs: timeoutMs, tries: 1, fetch, signal };
    // The events may be loaded when an answer breaks off: to send them again is how to know.
    return again(tries, signal, async () => {
      const decoder = new TextDecoder();
      let text = '';
      for await (const piece of pieces(`${url}/v1/events${query}`, init, options)) {
        text += decoder.decode(piece, { stream: true });
      }
      return receivedOf(text);
    });
  }
}

/** JSON has no NaN and would say `null`, which is 0, or no id: as it is, no field takes it, and the record is rejected. */
const lineOf = (event: Readonly<Record<string, unknown>>): string => {
  // A text is a list of its characters.
  if (typeof event !== 'object' || event === null || Array.isArray(event)) {
    throw new TypeError('an event is an object: send a list of events, or bytes');
  }
  const marked = (_field: string, value: unknown) =>
    typeof value === 'number' && !Number.isFinite(value) ? `\0${value}` : value;
  return `${JSON.stringify(event, marked).replace(/"\\u0000(NaN|-?Infinity)"/g, '$1')}\n`;
};

function receivedOf(text: string): Received {
  try {
    const told = JSON.parse(text);
    if (typeof told.load === 'string') return told;
  } catch {
    // As below.
  }
  throw new AdtallyError(200, { detail: 'the answer is not one of adtally' });
}
