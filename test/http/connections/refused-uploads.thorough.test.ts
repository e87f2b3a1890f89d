import { once } from 'node:events';
import { expect, test } from 'vitest';
import { length, useUploads } from '../../support/uploads.ts';

const { areRefused, head, raw } = useUploads();

areRefused([
  ['is too large, over a slow line', 413, [length(50)], undefined, 30],
  ['is too large, in chunks, over a slow line', 413, ['Transfer-Encoding: chunked'], undefined, 30],
  ['is no JSON, over a slow line', 415, [length(50), 'Content-Type: text/plain'], undefined, 30],
  ['has no valid token, over a slow line', 401, [length(50)], 'Bearer nothing', 30],
]);

test('a caller that neither sends the rest of a refused upload nor leaves is cut off', async () => {
  const socket = raw({ allowHalfOpen: true });
  const failure = new Promise<NodeJS.ErrnoException>((resolve) => socket.once('error', resolve));
  socket.resume().write(await head([length(50), 'Connection: close']));
  await once(socket, 'end');
  // Longer than it may pause. A caller that has heard the end learns of the cut only by sending on.
  const paused = performance.now();
  await expect.poll(() => performance.now() - paused, { timeout: 15_000 }).toBeGreaterThan(11_000);
  const again = setInterval(() => socket.write('x'), 100);
  expect((await failure).code).toMatch(/^(ECONNRESET|EPIPE)$/);
  clearInterval(again);
}, 30_000);
