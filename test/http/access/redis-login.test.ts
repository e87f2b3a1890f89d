import { afterAll, expect, test, vi } from 'vitest';
import { freePort } from '../../../clickhouse/embedded/free-ports.ts';
import { openRedis } from '../../../src/http/access/redis.ts';
import { openLog } from '../../../src/observe/log.ts';
import { type Command, startProcess } from '../../support/process.ts';

let redis: Command | undefined;
afterAll(async () => {
  await redis?.kill('SIGKILL');
});

test('a password that Redis refuses is not in the log', async () => {
  const port = await freePort();
  redis = startProcess('redis-server', [
    '--port',
    `${port}`,
    '--save',
    '',
    '--requirepass',
    'the-new-secret',
  ]);
  await redis.said(/Ready to accept connections/);
  const lines: string[] = [];
  const log = openLog('info', { write: (line) => void lines.push(line) });
  const client = openRedis(`redis://:the-old-secret@127.0.0.1:${port}`, log);
  try {
    await expect(client.connect()).rejects.toThrow();
    await vi.waitUntil(() => lines.length > 0, { timeout: 20_000 });
    expect(lines[0]).toMatch(/WRONGPASS.*Redis fails/);
    expect(lines.join('')).not.toContain('the-old-secret');
  } finally {
    client.disconnect();
  }
});
