import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { linger } from '../../../src/http/server/connections.ts';

const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

test('a caller that left before the service waits for the rest of its request leaves no timer, which would keep a stop waiting', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const caller = connect(address.port, '127.0.0.1');
  const [socket] = await once(server, 'connection');
  caller.destroy();
  await once(socket.resume(), 'close');
  const before = timers();
  linger(socket, 30_000);
  expect(timers()).toBe(before);
  server.close();
});
