import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { embedded } from '../support/compiled.ts';
import { answerTo, listeningPorts } from '../support/strangers.ts';

const { acquireEmbedded } = await embedded();
const root = mkdtempSync(join(tmpdir(), 'adtally-native-'));
afterAll(() => rmSync(root, { recursive: true, maxRetries: 20 }));

test('on its native port, which it has only when asked, no user gets in without a password', async () => {
  const asking = await acquireEmbedded(join(root, 'asking'));
  const native = await acquireEmbedded(join(root, 'native'), { native: true });
  try {
    const login = (user: string, password: string) =>
      answerTo(
        asking.address,
        `SELECT 'in' FROM remote('127.0.0.1:${native.tcpPort}', system, one, '${user}', '${password}')`,
      );
    expect(listeningPorts(native.pid)).toContain(native.tcpPort);
    expect(await login('adtally', native.address.password)).toBe('in');
    for (const user of ['default', 'adtally', 'reporter']) {
      // A failed login ends the engine, which then is started again.
      const refused = /USER_SESSION_LIMIT_EXCEEDED|AUTHENTICATION_FAILED/;
      await vi.waitFor(async () => expect(await login(user, '')).toMatch(refused), {
        timeout: 60_000,
        interval: 200,
      });
    }
  } finally {
    await native.release();
    await asking.release();
  }
});
