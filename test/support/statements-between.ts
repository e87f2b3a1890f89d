import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll } from 'vitest';
import type { TestStore } from './store.ts';

/** A statement on its way to ClickHouse. */
export interface Passing {
  readonly query: string;
  readonly headers: IncomingHttpHeaders;
  /** Those that are given to it here go on with it. */
  readonly settings: URLSearchParams;
  /** Aborted when whoever sent it has left. */
  readonly left: AbortSignal;
}

/** The answer of a load balancer itself. */
export interface Page {
  readonly status: number;
  readonly text: string;
}

const isPage = (held: unknown): held is Page => typeof held === 'object' && held !== null && 'status' in held;

/**
 * A way to ClickHouse on which each statement first waits for `hold`; where that returns a number, the connection breaks
 * off after so many bytes of the answer; where it returns a page, that is the answer, and ClickHouse is not asked.
 * @param addressOf of ClickHouse, once the tests begin
 */
export function useStatementsBetween(
  addressOf: () => string,
  hold: (passing: Passing) => unknown,
): { readonly url: string } {
  // As much as load balancers take of an address.
  const server = createServer({ maxHeaderSize: 8 << 10 }, async (incoming, outgoing) => {
    const leaving = new AbortController();
    const body = await buffer(incoming);
    outgoing.once('close', () => leaving.abort());
    const { searchParams } = new URL(incoming.url ?? '/', 'http://localhost');
    const query = `${searchParams.get('query') ?? ''}${body}`;
    const { headers } = incoming;
    const bytes = await hold({ query, headers, settings: searchParams, left: leaving.signal });
    if (isPage(bytes)) return void outgoing.writeHead(bytes.status).end(bytes.text);
    const onward = request(
      `${addressOf()}/?${searchParams}`,
      { method: incoming.method, headers, signal: leaving.signal },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.on('error', () => outgoing.destroy());
        if (typeof bytes !== 'number') return void answer.pipe(outgoing);
        let left = bytes;
        answer.once('end', () => outgoing.destroy());
        answer.on('data', (piece: Buffer) => {
          outgoing.write(piece.subarray(0, left), () => left <= 0 && outgoing.destroy());
          left = Math.max(0, left - piece.length);
        });
      },
    );
    onward.on('error', () => outgoing.destroy()).end(body);
  });
  let url = '';
  beforeAll(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    get url() {
      return url;
    },
  };
}

/** The store, whose service asks by another way. */
export function reachedBy(way: { readonly url: string }, test: TestStore): TestStore {
  return {
    get address() {
      return { ...test.address, url: way.url };
    },
    get store() {
      return test.store;
    },
    get shards() {
      return test.shards;
    },
  };
}
