import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll } from 'vitest';
import { reachedBy } from './statements-between.ts';
import type { TestStore } from './store.ts';

/**
 * The store, whose address leads through a server of the test.
 * @param through gets the path of each statement, and returns the one that goes on to ClickHouse
 */
export function useWay(
  db: TestStore,
  through: (path: string, headers: IncomingHttpHeaders) => string | Promise<string>,
): TestStore {
  const way = createServer(async (asked, answer) => {
    const { url = '', method, headers } = asked;
    const path = await through(url, headers);
    if (answer.destroyed) return;
    const { hostname, port } = new URL(db.address.url);
    const onward = request({ hostname, port, path, method, headers, agent: false }, (response) => {
      answer.writeHead(response.statusCode ?? 500, response.headers);
      response.pipe(answer);
    });
    onward.on('error', () => answer.destroy());
    answer.on('close', () => onward.destroy());
    asked.pipe(onward);
  });
  // What is held back has not come.
  way.requestTimeout = 0;
  beforeAll(async () => {
    await once(way.listen(0, '127.0.0.1'), 'listening');
  });
  afterAll(() => {
    way.closeAllConnections();
    way.close();
  });
  const here = {
    get url() {
      return `http://127.0.0.1:${(way.address() as AddressInfo).port}`;
    },
  };
  return reachedBy(here, db);
}
