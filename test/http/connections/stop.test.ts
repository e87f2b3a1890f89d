import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { expect, inject, test } from 'vitest';
import { useServicesToStop } from '../../support/stopped-service.ts';
import { useStore } from '../../support/store.ts';

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

test('a stop does not wait for a ClickHouse that hangs, and what it breaks off is logged as no fault', async () => {
  const { hostname, port } = new URL(inject('clickhouse').url);
  let asked: (() => void) | undefined;
  const between = createServer((socket) => {
    const upstream = connect(Number(port), hostname);
    for (const each of [socket, upstream]) each.on('error', () => undefined);
    socket.on('data', (piece) => (asked ? asked() : upstream.write(piece)));
    upstream.pipe(socket);
    socket.on('close', () => upstream.destroy());
  });
  await once(between.listen(0, '127.0.0.1'), 'listening');
  try {
    const address = between.address();
    const { serve } = await startService({
      CLICKHOUSE_URL: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    });
    // From here on ClickHouse answers nothing; what the service asks by the clock is under way when it stops.
    await new Promise<void>((resolve) => {
      asked = resolve;
    });
    const { code, stderr } = await serve.kill('SIGTERM');
    expect(code).toBe(0);
    expect(stderr.split('\n').filter((line) => /"level":[56]0/.test(line))).toEqual([]);
  } finally {
    between.close();
  }
});
