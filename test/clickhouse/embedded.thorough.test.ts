import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { embedded } from '../support/compiled.ts';

test('an engine that dies again and again is given up and its holders are told', async () => {
  const { acquireEmbedded } = await embedded();
  const dataDir = mkdtempSync(join(tmpdir(), 'adtally-embedded-'));
  const stateFile = join(dataDir, 'clickhouse.json');
  const enginePid = (): number => JSON.parse(readFileSync(stateFile, 'utf8')).pid;
  const lease = await acquireEmbedded(dataDir);
  try {
    for (let pid = lease.pid, deaths = 1; ; deaths++) {
      process.kill(pid, 'SIGKILL');
      if (deaths === 10) break;
      await vi.waitUntil(() => enginePid() !== pid, { timeout: 20_000, interval: 20 });
      pid = enginePid();
    }
    await lease.lost;
    expect(existsSync(stateFile)).toBe(false);
    expect(readFileSync(join(dataDir, 'clickhouse.log'), 'utf8')).toContain('gave up');
  } finally {
    await lease.release();
    rmSync(dataDir, { recursive: true, maxRetries: 20 });
  }
});
