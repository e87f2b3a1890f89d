import { once } from 'node:events';
import { brotliDecompressSync, gunzipSync, constants as z } from 'node:zlib';
import { beforeAll, expect, test, vi } from 'vitest';
import { openLog } from '../../../src/observe/log.ts';
import { insertLarge } from '../../support/accounts.ts';
import { openReport, startProcess } from '../../support/process.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';
import { killReports, reportsRunning } from '../report-statements.ts';

const lines: string[] = [];
const log = openLog('info', { write: (line) => void lines.push(line) });
const db = useStore();
const service = useService(db, {}, log);

beforeAll(() => insertLarge(db.store, ['large'], 400_000));

/** What can be unpacked of an answer that breaks off. */
const unpacked: Record<string, (body: Buffer) => string | Promise<string>> = {
  identity: (body) => body.toString('latin1'),
  gzip: (body) => gunzipSync(body, { finishFlush: z.Z_SYNC_FLUSH }).toString('latin1'),
  br: (body) => brotliDecompressSync(body, { finishFlush: z.BROTLI_OPERATION_FLUSH }).toString('latin1'),
  zstd: async (body) => (await startProcess('zstd', ['-dc'], {}, body).ended).stdout,
};

test.each(Object.keys(unpacked))(
  'why an answer broke off is told to the operator and not to the caller: %s',
  async (coding) => {
    const answer = await openReport(service.url, { token: await service.token('large'), accept: coding });
    await once(answer, 'readable');
    const request = String(answer.headers['x-request-id']);
    await killReports(db.store);
    const pieces: Buffer[] = [];
    const broken = await (async () => {
      for await (const piece of answer as AsyncIterable<Buffer>) pieces.push(piece);
    })().then(
      () => false,
      () => true,
    );
    expect(broken).toBe(true);
    const text = (await unpacked[coding]?.(Buffer.concat(pieces))) ?? '';
    // A block of rows at least: as many as had come when the statement was killed.
    expect(text.length).toBeGreaterThan(100_000);
    expect(text.slice(-100_000)).not.toMatch(/__exception__|DB::|Code: \d/);

    const find = () =>
      lines
        .map((line) => JSON.parse(line))
        .find((line) => line.msg === 'answer broken off' && line.request === request);
    const line = await vi.waitUntil(find, { timeout: 20_000 });
    expect(line.reason).toMatch(/^Code: 394\. DB::Exception: .*QUERY_WAS_CANCELLED/s);
    expect(line.query).toMatch(/^[0-9a-f-]{36}$/);
  },
);

test('a caller that leaves takes its statement with it, and is no failure to look up', async () => {
  const token = await service.token('large');
  const callers = await Promise.all(
    ['gzip', 'zstd', 'identity'].map((accept) => openReport(service.url, { token, accept })),
  );
  await Promise.all(callers.map((each) => once(each, 'readable')));
  expect(await reportsRunning(db.store)).toHaveLength(callers.length);
  for (const each of callers) each.destroy();
  await expect.poll(() => reportsRunning(db.store), { timeout: 2_000, interval: 50 }).toEqual([]);
  const request = String(callers[0]?.headers['x-request-id']);
  const line = await vi.waitUntil(
    () => lines.map((text) => JSON.parse(text)).find((each) => each.request === request && each.err),
    { timeout: 10_000 },
  );
  expect(line).not.toHaveProperty('reason');
});
