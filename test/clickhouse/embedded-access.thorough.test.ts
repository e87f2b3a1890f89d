import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Server } from '../../clickhouse/client.ts';
import type { EmbeddedLease } from '../../clickhouse/embedded/embedded.ts';
import { embedded } from '../support/compiled.ts';
import { ask, basic, listeningPorts } from '../support/strangers.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const { acquireEmbedded } = await embedded();
let root: string;
let dataDir: string;
let lease: EmbeddedLease;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'adtally-access-'));
  // Whatever keeps others out has to be DATA_DIR itself.
  chmodSync(root, 0o755);
  dataDir = join(root, 'data');
  lease = await acquireEmbedded(dataDir);
});

afterAll(async () => {
  await lease?.release();
  rmSync(root, { recursive: true, maxRetries: 20 });
});

/** A statement of a user who logs in; its answer, or the error. */
async function run({ url, user, password }: Server, sql: string): Promise<string> {
  const { body } = await ask(url, { headers: { authorization: basic(user, password) }, body: sql });
  return body.trim();
}

test('on its native port, which it has only when asked, no user gets in without a password', async () => {
  const native = await acquireEmbedded(join(root, 'native'), { native: true });
  try {
    const login = (user: string, password: string) =>
      run(
        lease.address,
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
  }
});
