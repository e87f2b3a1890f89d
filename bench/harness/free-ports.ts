import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/** Below those that Linux gives to connections, 32768 to 60999: one of those is taken at times while its server restarts. */
const lowest = 20_000;
const highest = 32_767;

/** Ports of this machine that nothing listens on, for servers that cannot choose one or come back on the same. */
export async function freePorts(count: number): Promise<number[]> {
  // All are held before the first is let go, so that no two are the same.
  const held = new Map<number, Server>();
  while (held.size < count) {
    const port = randomInt(lowest, highest + 1);
    const server = createServer().listen(port, '127.0.0.1');
    const free = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (free) held.set(port, server);
  }
  await Promise.all([...held.values()].map((server) => once(server.close(), 'close')));
  return [...held.keys()];
}

/** One of them. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}
