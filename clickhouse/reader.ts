import { Agent, type IncomingMessage, request as plainRequest, type RequestOptions } from 'node:http';
import { Agent as TlsAgent, request as tlsRequest } from 'node:https';
import { buffer, text } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { parseError } from '@clickhouse/client';
import { decompress as zstd } from 'fzstd';
import type { Address } from './client.ts';

/** A statement that reads. */
export interface ReadStatement {
  readonly query: string;
  /** Values of its `{name:Type}` parameters. */
  readonly params: Readonly<Record<string, string>>;
  readonly settings: Readonly<Record<string, string | number>>;
}

export interface ReadOptions {
  readonly queryId?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Aborting it gives the statement up, also before its first byte. */
  readonly signal?: AbortSignal;
}

/**
 * Asks a ClickHouse server for what reports need and hands its answer on as it comes. The client library waits
 * for a timer before each statement and sends its text in two pieces: 2 ms, where a small report takes 4.
 */
export class Reader {
  readonly #database: string;
  readonly #options: RequestOptions;
  readonly #request: typeof plainRequest;
  readonly #agent: Agent;

  /**
   * Nothing is sent before the first statement; whoever opens a reader closes it.
   * @param idleTimeoutMs how long the server may send nothing
   */
  constructor({ url, user, password, database }: Address, idleTimeoutMs: number) {
    const { protocol, hostname, port, pathname } = new URL(url);
    this.#database = database;
    const tls = protocol === 'https:';
    this.#request = tls ? tlsRequest : plainRequest;
    this.#agent = new (tls ? TlsAgent : Agent)({ keepAlive: true, noDelay: true });
    this.#options = {
      method: 'POST',
      // An IPv6 address stands in brackets in a URL only.
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port,
      path: pathname,
      agent: this.#agent,
      timeout: idleTimeoutMs,
      headers: { 'X-ClickHouse-User': user, 'X-ClickHouse-Key': password },
    };
  }

  /**
   * Answers as soon as the server does; the body follows. Destroying it cancels the statement.
   * @throws {ClickHouseError} what the server refuses the statement with
   * @throws the network's error when the server is not reached
   */
  async stream(statement: ReadStatement, options: ReadOptions = {}): Promise<IncomingMessage> {
    const answer = await this.#send(statement, options).catch((error: unknown) => {
      // The server had closed an idle connection at the moment it was used again. Reading twice does no harm.
      if (error instanceof ReusedSocketError) return this.#send(statement, options);
      throw error;
    });
    if (answer.headers['x-clickhouse-exception-code'] === undefined && answer.statusCode === 200) {
      return answer;
    }
    throw await refusal(answer);
  }

  /** Rows of a small statement, in the server's JSON. */
  async rows<Row>(statement: ReadStatement, options: ReadOptions = {}): Promise<Row[]> {
    const query = `${statement.query}\nFORMAT JSONEachRow`;
    const lines = await text(await this.stream({ ...statement, query }, options));
    return lines.split('\n').flatMap((line): Row[] => (line === '' ? [] : [JSON.parse(line)]));
  }

  close(): void {
    this.#agent.destroy();
  }

  #send(
    { query, params, settings }: ReadStatement,
    { queryId, headers, signal }: ReadOptions,
  ): Promise<IncomingMessage> {
    const search = new URLSearchParams({ database: this.#database, ...(queryId && { query_id: queryId }) });
    for (const [name, value] of Object.entries(settings)) search.set(name, String(value));
    for (const [name, value] of Object.entries(params)) search.set(`param_${name}`, escaped(value));
    return new Promise((resolve, reject) => {
      const sent = this.#request({
        ...this.#options,
        path: `${this.#options.path}?${search}`,
        headers: { ...this.#options.headers, ...headers, 'Content-Length': Buffer.byteLength(query) },
        ...(signal && { signal }),
      });
      sent.once('response', resolve);
      sent.once('timeout', () => {
        sent.destroy(new Error(`ClickHouse sent nothing for ${Number(this.#options.timeout) / 1000} s`));
      });
      sent.once('error', (error) => {
        const closed =
          sent.reusedSocket && 'code' in error && error.code === 'ECONNRESET' && !signal?.aborted;
        reject(closed ? new ReusedSocketError(error.message, { cause: error }) : error);
      });
      sent.end(query);
    });
  }
}

class ReusedSocketError extends Error {}

const escapes: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '\0': '\\0',
  "'": "\\'",
};

/** A parameter's value as the server reads it: one field of TSV. */
function escaped(value: string): string {
  return value.replace(/[\\\t\n\r\0']/g, (character) => escapes[character] ?? character);
}

/** The error in an answer, which is compressed as the rows would have been. */
async function refusal(answer: IncomingMessage): Promise<Error> {
  const coding = answer.headers['content-encoding'] ?? 'identity';
  const unpack = { identity: (packed: Buffer) => packed, gzip: gunzipSync, br: brotliDecompressSync, zstd };
  if (!(coding in unpack)) throw new Error(`ClickHouse answers in an unknown coding: ${coding}`);
  const message = unpack[coding as keyof typeof unpack](await buffer(answer));
  return parseError(Buffer.from(message).toString());
}
