import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defaultMapping } from '../../../ingest/event/mapping.ts';
import { mappedReading } from '../../../ingest/event/reading.ts';
import { formatOf } from '../../../ingest/formats/formats.ts';
import type { Input } from '../../../ingest/input/input.ts';
import { InputChanged } from '../../../ingest/input/input-error.ts';
import { readerOf } from '../../../ingest/input/pieces.ts';
import { loadEvents } from '../../../ingest/load/load-events.ts';
import { loadFiles } from '../../../ingest/load/load-files.ts';
import { event, ndjson } from '../../support/events.ts';
import { useLoader } from '../../support/loader.ts';
import { parquetFile } from '../../support/parquet.ts';
import { useStore } from '../../support/store.ts';

/** What the loader needs of an input that is no file: objects that a server hands out, whole or by ranges. */

const db = useStore();
const { own, ...loader } = useLoader(db);

const objects = new Map<string, Buffer>();
const server = createServer((request, response) => {
  const content = objects.get(request.url ?? '') ?? Buffer.alloc(0);
  const [, start = '0', end = ''] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
  response.end(content.subarray(Number(start), end === '' ? undefined : Number(end) + 1));
});
beforeAll(() => new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve)));
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

function stored(path: string, content: Buffer): Input {
  objects.set(path, content);
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;
  return {
    name: url,
    endings: path.split('.').slice(1),
    size: () => objects.get(path)?.length,
    readFrom: async (start, signal) => {
      const { body } = await fetch(url, { headers: { range: `bytes=${start}-` }, ...(signal && { signal }) });
      const stream = Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]);
      const reader = readerOf(stream, async () => void stream.destroy());
      return { ...reader, size: content.length - start };
    },
    readRange: async (target, start) => {
      const range = `bytes=${start}-${start + target.length - 1}`;
      return Buffer.from(await (await fetch(url, { headers: { range } })).arrayBuffer()).copy(target);
    },
  };
}

const load = (input: Input) =>
  loadEvents({ store: db.store, input, chunkBytes: 128 << 20, now: () => new Date() });

const events = 40_000;
const lines = () =>
  Array.from({ length: events }, (_, n) =>
    event({ event_id: `${own.account}-${n}`, advertiser_id: own.account }),
  );
const csv = () => {
  const rows = lines().map(
    ({ event_id, event_time }) => `${event_id},${event_time},impression,${own.account},c`,
  );
  return ['event_id,event_time,event_type,advertiser_id,campaign_id', ...rows].join('\n');
};
const contents: Readonly<Record<string, () => Buffer | Promise<Buffer>>> = {
  // More than is held as one piece: see `smallInputBytes`.
  'e.ndjson': () => Buffer.from(ndjson(lines()).replaceAll('{', `{${' '.repeat(250)}`)),
  'e.ndjson.gz': () => gzipSync(ndjson(lines())),
  'e.csv': () => Buffer.from(csv()),
  'e.tsv': () => Buffer.from(csv().replaceAll(',', '\t')),
  'e.parquet': () => parquetFile(db.store, own.account, events),
};

test.each(Object.entries(contents))(
  '%s of a server loads as from a file, and once',
  async (name, content) => {
    const input = stored(`/${own.account}/${name}`, await content());
    expect(await load(input)).toMatchObject({ rows: events, rejectedRows: 0, bytes: input.size() });
    expect(await load(input)).toMatchObject({ rows: 0, repeatedRows: events });
    expect(await loader.counted()).toBe(events);
  },
);

test.each(['e.ndjson', 'e.parquet'])('%s that is replaced while it is read is not loaded', async (name) => {
  const content = (await contents[name]?.()) ?? Buffer.alloc(0);
  const path = `/${own.account}/${name}`;
  const input = stored(path, content);
  let read = 0;
  const replace = async (target: Buffer, start: number) => {
    objects.set(path, Buffer.from(content).fill('x', 1000, 2000));
    return input.readRange(target, start);
  };
  const replaced: Input = {
    ...input,
    readRange: formatOf(input).text ? replace : input.readRange,
    readFrom: async (start, signal) => {
      // Parquet is read from its start to be named, and once more to be sent.
      if (read++ > 0) objects.set(path, Buffer.from(content).fill('x', 1000, 2000));
      return input.readFrom(start, signal);
    },
  };
  await expect(load(replaced)).rejects.toThrow(`${input.name}: was changed while it was read`);
  expect(await loader.counted()).toBe(0);
});

test('Parquet that is replaced while its footer is read is read anew', async () => {
  const input = stored(`/${own.account}/e.parquet`, await parquetFile(db.store, own.account, events));
  let isRenewed = false;
  const replaced: Input = {
    ...input,
    readRange: async (target, start) => {
      // The first bytes that are read are the last four.
      if (target.length > 4 && !isRenewed) throw new InputChanged('was changed while it was read');
      return input.readRange(target, start);
    },
    renew: async () => {
      isRenewed = true;
    },
  };
  const readingOf = (file: string) => mappedReading(file, defaultMapping);
  const [result] = await loadFiles([replaced], { store: db.store, now: () => new Date(), readingOf });
  expect(result).toMatchObject({ rows: events });
});
