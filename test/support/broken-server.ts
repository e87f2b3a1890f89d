import { once } from 'node:events';
import { createServer, type OutgoingHttpHeaders, type ServerResponse } from 'node:http';
import { afterAll, beforeAll } from 'vitest';

/** A server that breaks off, stalls or refuses as it is told, on this machine. */
export function useBrokenServer() {
  let ways: readonly ((response: ServerResponse) => void)[] = [];
  let requests = 0;
  let url = '';
  const server = createServer((request, response) => {
    request.resume();
    const way = ways[Math.min(requests++, ways.length - 1)];
    request.once('end', () => way?.(response));
  });
  beforeAll(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const address = server.address();
    url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    get url() {
      return url;
    },
    get requests() {
      return requests;
    },
    /** How the next requests are answered, in turn; the last way holds on. */
    answers: (...next: typeof ways) => {
      ways = next;
      requests = 0;
    },
  };
}

/** As if the service had begun to answer. */
export const begins = (response: ServerResponse, headers: OutgoingHttpHeaders = {}): ServerResponse =>
  response.writeHead(200, { 'content-type': response.req.headers.accept ?? 'text/plain', ...headers });

/** Sends the pieces and destroys the connection. */
export const breaksOff =
  (...pieces: readonly string[]) =>
  (response: ServerResponse): void => {
    begins(response);
    for (const piece of pieces) response.write(piece);
    setTimeout(() => response.destroy(), 50);
  };

/** Sends them and ends well. */
export const ends =
  (...pieces: readonly string[]) =>
  (response: ServerResponse): void => {
    begins(response);
    for (const piece of pieces) response.write(piece);
    response.end();
  };

export const refuses =
  (status: number, code: string, headers: Record<string, string> = {}) =>
  (response: ServerResponse): void => {
    response.writeHead(status, { ...headers, 'content-type': 'application/problem+json' });
    response.end(JSON.stringify({ status, code, detail: `refused: ${code}`, request_id: 'r' }));
  };
