import { createHash } from 'node:crypto';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { connect, insertData, select } from '../../../clickhouse/client.ts';
import { unload } from '../../../ingest/history/unload.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { loadEvents } from '../../../ingest/load/load-events.ts';
import { useLoader } from '../../support/loader.ts';
import { onlyChunk } from '../../support/only-chunk.ts';
import { useStore } from '../../support/store.ts';

/** Files whose chunks are several pieces, so that each is read once to be named and once to be sent. */

const db = useStore();
const { own, ...loader } = useLoader(db);

const events = 60_000;
const columns = 'event_id,event_time,event_type,quantity,advertiser_id,campaign_id';
const note = 'x'.repeat(100);
/** More than is held as one piece: see `smallInputBytes`. */
const blanks = 150;
const kinds = {
  ndjson: () =>
    Array.from(
      { length: events },
      (_, n) =>
        `{${' '.repeat(blanks)}"event_id":"${own.account}-${n}","event_time":"2026-03-01 12:00:00","event_type":"impression","quantity":${n},"advertiser_id":"${own.account}","campaign_id":"${note}"}`,
    ).join('\r\n'),
  csv: () =>
    `${columns}\n${Array.from(
      { length: events },
      (_, n) =>
        `${own.account}-${n},2026-03-01 12:00:00,impression,${n},${own.account},"${n % 3 ? '' : '\n\n'}${note}"`,
    ).join('\n'.repeat(blanks))}\n`,
};
type Kind = keyof typeof kinds;

const load = (
  file: string,
  onProgress: (counts: { bytes: number; chunks: number }) => void = () => {},
  chunkBytes = 128 << 20,
) =>
  loadEvents({
    store: db.store,
    input: new LocalFile(file),
    chunkBytes,
    now: () => new Date(),
    onProgress,
  });

async function stored() {
  const query =
    'SELECT toUInt32(count()) AS events, toUInt32(uniqExact(event_id)) AS ids, toFloat64(sum(impressions)) AS impressions FROM events WHERE advertiser_id = {account:String}';
  const [row] = await select(db.store, query, { account: own.account });
  return row;
}
const whole = { events: events - 1, ids: events - 1, impressions: (events * (events - 1)) / 2 };

test.each<Kind>(['ndjson', 'csv'])('every event of it is counted once, packed or not: %s', async (kind) => {
  const content = kinds[kind]();
  // The first event has quantity 0, and is rejected.
  const plain = await loader.file(`plain.${kind}`, content);
  expect(await load(plain)).toMatchObject({ rows: events - 1, rejectedRows: 1 });
  expect(await stored()).toEqual(whole);
  const packed = await loader.file(`packed.${kind}.gz`, gzipSync(content));
  expect(await load(packed)).toMatchObject({ rows: 0, repeatedRows: events - 1 });
  const marked = await loader.file(`marked.${kind}`, `\ufeff${content}`);
  expect(await load(marked)).toMatchObject({ rows: 0, repeatedRows: events - 1 });
  expect(await stored()).toEqual(whole);
});

test('what was loaded from a packed file is known in the file itself', async () => {
  const content = kinds.csv();
  await load(await loader.file('packed.csv.gz', gzipSync(content)));
  const plain = await loader.file('plain.csv', content);
  expect(await load(plain)).toMatchObject({ rows: 0, repeatedRows: events - 1 });
  // It has grown since.
  await loader.file(
    'plain.csv',
    `${content}${own.account}-more,2026-03-01 12:00:00,impression,7,${own.account},more\n`,
  );
  expect(await load(plain)).toMatchObject({ rows: 1, repeatedRows: events - 1, chunks: 2 });
});

test('one that is deleted between its being named and sent is not loaded', async () => {
  const content = `${kinds.ndjson()}\n`;
  const file = await loader.file('deleted.ndjson', content);
  const onProgress = ({ bytes }: { bytes: number }) => {
    if (bytes === content.length) rmSync(file, { force: true });
  };
  await expect(load(file, onProgress)).rejects.toThrow(`${file}: there is no such file`);
  expect(await stored()).toMatchObject({ events: 0 });
});

test.each([
  ['changed', (content: string) => content.replace('"quantity":59000', '"quantity":59001')],
  ['cut off', (content: string) => content.slice(0, -1_000)],
])('one that is %s between its being named and sent is not loaded', async (_, change) => {
  const content = `${kinds.ndjson()}\n`;
  const file = await loader.file('changing.ndjson', content);
  let read = false;
  const onProgress = ({ bytes }: { bytes: number }) => {
    if (bytes < content.length || read) return;
    read = true;
    writeFileSync(file, change(content));
  };
  await expect(load(file, onProgress)).rejects.toThrow(`${file}: was changed while it was read`);
  expect(await stored()).toMatchObject({ events: 0 });
});

test.each([
  ['ndjson', (content: string) => content, 'was changed while it was read'],
  ['ndjson.gz', (content: string) => gzipSync(content, { level: 0 }), '(is damaged|is truncated)'],
])(
  'one (%s) that is overwritten behind its first chunk says which load to take back',
  async (ending, packed, how) => {
    const content = `${kinds.ndjson()}\n`;
    const file = await loader.file(`overwritten.${ending}`, packed(content));
    const others = packed(content.replaceAll('"quantity":', '"quantity":1'));
    const onProgress = ({ chunks }: { chunks: number }) => {
      if (chunks > 0) writeFileSync(file, others);
    };
    const failure = String(await load(file, onProgress, 4 << 20).catch((error: unknown) => error));
    expect(failure).toMatch(new RegExp(`${how}. If it was overwritten meanwhile, adtally unload`));
    expect(await stored()).not.toMatchObject({ events: 0 });
    const [, sent = ''] = /adtally unload (\S+) takes/.exec(failure) ?? [];
    await unload(db.store, sent, () => new Date());
    expect(await stored()).toMatchObject({ events: 0 });
  },
);

const changed = (content: string) => content.replace('"quantity":0', '"quantity":1').repeat(2);

test.each<[string, string, (file: string, content: string) => void]>([
  ['overwritten', 'is not loaded', (file, content) => writeFileSync(file, changed(content))],
  ['appended to', 'is loaded', (file, content) => writeFileSync(file, content.repeat(2))],
  [
    'replaced by another file',
    'is loaded',
    (file, content) => {
      writeFileSync(`${file}.new`, changed(content));
      renameSync(`${file}.new`, file);
    },
  ],
])('one of few pieces that is %s behind its first bytes %s', async (_, outcome, write) => {
  const content = `${kinds.ndjson().slice(0, 1_000_000)}\n`;
  const file = await loader.file('small.ndjson', content);
  let written = false;
  const loading = load(file, () => {
    if (!written) write(file, content);
    written = true;
  });
  if (outcome === 'is loaded') await loading;
  else await expect(loading).rejects.toThrow(`${file}: was changed while it was read`);
  const { events } = Object(await stored());
  expect(events > 0).toBe(outcome === 'is loaded');
});

test.each<Kind>(['ndjson', 'csv'])('a receiver that reads slowly gets the same bytes: %s', async (kind) => {
  const hashes: string[] = [];
  const server = createServer(async (request, response) => {
    const hash = createHash('sha256');
    let pauses = 0;
    for await (const data of request) {
      hash.update(data);
      if (pauses++ % 40 === 0) await delay(20);
    }
    hashes.push(hash.digest('hex'));
    response.end();
  }).listen(0);
  const { port } = server.address() as AddressInfo;
  const store = connect({ ...db.address, url: `http://127.0.0.1:${port}` });
  try {
    const chunk = await onlyChunk(await loader.file(`slow.${kind}`, kinds[kind]()), 100_000);
    const expected = createHash('sha256').update(' FORMAT X\n');
    let bytes = 0;
    for await (const data of chunk.stream()) {
      expected.update(data);
      bytes += data.length;
    }
    expect(bytes).toBeGreaterThan(10_000_000);
    await insertData(store, { into: 'x', format: 'X', data: chunk.stream(), settings: {} });
    expect(hashes).toEqual([expected.digest('hex')]);
  } finally {
    await store.close();
    server.close();
  }
});
