import { Agent, type IncomingMessage, request as plainRequest, type RequestOptions } from 'node:http';
import { Agent as TlsAgent, request as tlsRequest } from 'node:https';
import { text } from 'node:stream/consumers';
import { createBrotliDecompress, createGunzip } from 'node:zlib';
import { ClickHouseError, parseError } from '@clickhouse/client';
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
  readonly #url: URL;
  readonly #options: RequestOptions;
  readonly #request: typeof plainRequest;
  readonly #agent: Agent;

  /**
   * Nothing is sent before the first statement; whoever opens a reader closes it.
   * @param idleTimeoutMs how long the server may send nothing
   */
  constructor({ url, user, password, database }: Address, idleTimeoutMs: number) {
    this.#url = new URL(url);
    this.#url.searchParams.set('database', database);
    const tls = this.#url.protocol === 'https:';
    this.#request = tls ? tlsRequest : plainRequest;
    this.#agent = new (tls ? TlsAgent : Agent)({ keepAlive: true, noDelay: true });
    this.#options = {
      method: 'POST',
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
    const url = new URL(this.#url);
    if (queryId) url.searchParams.set('query_id', queryId);
    for (const [name, value] of Object.entries(settings)) url.searchParams.set(name, String(value));
    for (const [name, value] of Object.entries(params)) url.searchParams.set(`param_${name}`, escaped(value));
    return new Promise((resolve, reject) => {
      const sent = this.#request(url, {
        ...this.#options,
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
  const { 'content-encoding': coding, 'x-clickhouse-exception-code': code } = answer.headers;
  if (coding === 'gzip' || coding === 'br') {
    const unpack = coding === 'gzip' ? createGunzip() : createBrotliDecompress();
    return parseError(await text(answer.pipe(unpack)));
  }
  if (coding === undefined) return parseError(await text(answer));
  // Not every Node.js of ours reads zstd.
  answer.resume();
  const id = answer.headers['x-clickhouse-query-id'];
  return new ClickHouseError({
    code: String(code),
    type: code === '159' ? 'TIMEOUT_EXCEEDED' : '',
    message: `code ${code}; system.query_log tells more of the query ${id}`,
  });
}
