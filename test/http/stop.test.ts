import { once } from 'node:events';
import { expect, test } from 'vitest';
import { useServicesToStop } from '../support/stopped-service.ts';
import { useStore } from '../support/store.ts';

const startService = useServicesToStop(useStore());

test('a stop waits for nobody who asked nothing', async () => {
  const { serve, open } = await startService();
  const [silent, begun, resting] = [open(), open(), open()];
  for (const socket of [silent, begun, resting]) socket.on('error', () => undefined);
  await Promise.all([silent, begun, resting].map((socket) => once(socket, 'connect')));
  resting.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
  begun.write('GET /healthz HTTP/1.1\r\nHost: loc');
  await once(resting, 'data');
  const startedAt = performance.now();
  const { code } = await serve.kill('SIGTERM');
  expect(code).toBe(0);
  expect(performance.now() - startedAt).toBeLessThan(5_000);
});
