import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeAll, expect, test, vi } from 'vitest';
import { connect } from '../../clickhouse/client.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { insertLarge } from '../support/accounts.ts';
import { embedded } from '../support/compiled.ts';
import { engineIn } from '../support/embedded-processes.ts';
import { useFolder } from '../support/folder.ts';
import { listening, openReport, useCommands } from '../support/process.ts';
import { createMigrated } from '../support/store.ts';
import { reportsRunning } from './report-statements.ts';

type EmbeddedStore = ReturnType<typeof useEmbeddedStore>;

/** An embedded store of its own with one large account, and what services on it need. */
export function useEmbeddedStore(rows?: number) {
  const commands = useCommands();
  const folder = useFolder();
  const dataDir = join(folder, 'data');
  const env = { DATA_DIR: dataDir, PORT: '0', RATE_LIMIT_REQUESTS: '100000' };
  let token: string;

  beforeAll(async () => {
    const lease = await (await embedded()).acquireEmbedded(dataDir);
    const address = { ...lease.address, database: 'adtally' };
    await createMigrated(address);
    const store = connect(address);
    await insertLarge(store, ['large'], rows);
    token = await createToken(store, { account: 'large', label: '' });
    await store.close();
    await lease.release();
  });
  afterEach(async () => {
    await commands.killAll();
    await vi.waitUntil(() => !engine(), { timeout: 40_000 });
  });

  const engine = () => engineIn(dataDir);
  const runningEngine = () => {
    const running = engine();
    if (!running) throw new Error('no engine runs');
    return running;
  };
  const enginePid = () => runningEngine().pid;
  return {
    commands,
    folder,
    env,
    get token() {
      return token;
    },
    engine,
    enginePid,
    reportsRunning: async () => {
      const store = connect({ ...runningEngine().address, database: 'adtally' });
      return (await reportsRunning(store).finally(() => store.close())).length;
    },
    // Waits until reports come out whole again.
    expectWholeReports: async (url: string) => {
      const status = () =>
        openReport(url, { token, end: '2026-01-01' }).then(async (answer) => {
          const { complete } = await readAll(answer);
          return complete && answer.statusCode;
        });
      await expect.poll(status, { timeout: 30_000, interval: 100 }).toBe(200);
    },
  };
}

/** Reads to the end; the bytes, and whether the transfer ended as a complete one does. */
export async function readAll(
  answer: IncomingMessage,
): Promise<{ bytes: number; complete: boolean; tail: string }> {
  let bytes = 0;
  let tail = '';
  const failed = await (async () => {
    for await (const data of answer as AsyncIterable<Buffer>) {
      bytes += data.length;
      tail = (tail + data.toString('latin1')).slice(-20);
    }
  })().then(
    () => false,
    () => true,
  );
  expect(answer.complete).toBe(!failed);
  return { bytes, complete: !failed, tail };
}

/** A test for each coding. */
export function killedInAnAnswer(db: EmbeddedStore, codings: readonly string[]): void {
  const { commands, env, enginePid, expectWholeReports } = db;
  test.each(codings)(
    'ClickHouse killed in the middle of an answer never makes it look complete, and the next one works: %s',
    async (accept) => {
      const serve = commands.start(['serve'], env);
      const url = await listening(serve);
      const answer = await openReport(url, { token: db.token, accept });
      expect(answer.statusCode).toBe(200);
      await once(answer, 'readable');
      const killed = enginePid();
      process.kill(killed, 'SIGKILL');
      const { bytes, complete } = await readAll(answer);
      expect({ complete, some: bytes > 0 }).toEqual({ complete: false, some: true });
      await expectWholeReports(url);
      expect(enginePid()).not.toBe(killed);
      expect((await serve.kill('SIGTERM')).code).toBe(0);
    },
  );
}
