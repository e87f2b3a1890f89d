import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { InputError } from '../../../ingest/input/input-error.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { loadEvents } from '../../../ingest/load/load-events.ts';
import {
  bytesOf,
  type Field,
  fieldsOf,
  integerField,
  listField,
  type Struct,
  structField,
  structsOf,
} from '../../../ingest/parquet/thrift.ts';
import { useFolder } from '../../support/folder.ts';
import { parquetFile } from '../../support/parquet.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const folder = useFolder();
const path = join(folder, 'e.parquet');

/** Two row groups of 50,000 and 10,000 rows. */
let honest: Buffer;
beforeAll(async () => {
  honest = await parquetFile(db.store, 'account', 60_000);
});

const load = () =>
  loadEvents({
    store: db.store,
    input: new LocalFile(path),
    chunkBytes: 1 << 20,
    now: () => new Date('2026-03-02T00:00:00Z'),
  });

/** Numbers of fields in Parquet's Thrift definition. */
const rowsOfFile = 3;
const rowsOfGroup = 3;
const valuesOfColumn = 5;
const sizeOfColumn = 7;
const pageOfColumn = 9;
const childrenOfRoot = 5;

const integer = (fields: Struct, id: number, value: number) => fields.set(id, integerField(value));
const field = (fields: Struct, id: number): Field => {
  const found = fields.get(id);
  if (!found) throw new Error(`no field ${id}`);
  return found;
};

function changedFooter(bytes: Buffer, change: (file: Struct) => void): Buffer {
  const end = bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8);
  const file = fieldsOf(bytes.subarray(end, -8));
  change(file);
  const footer = bytesOf(file);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(footer.length);
  return Buffer.concat([bytes.subarray(0, end), footer, length, Buffer.from('PAR1')]);
}

const inLastGroup = (change: (group: Struct) => void) => (file: Struct) => {
  const groups = structsOf(field(file, 4));
  change(groups.at(-1) ?? new Map());
  file.set(4, listField(groups));
};
const inLastColumn = (change: (column: Struct) => void) =>
  inLastGroup((group) => {
    const columns = structsOf(field(group, 1));
    change(columns.at(-1) ?? new Map());
    group.set(1, listField(columns));
  });
const inLastPages = (change: (metadata: Struct) => void) =>
  inLastColumn((column) => {
    const metadata = fieldsOf(field(column, 3).bytes);
    change(metadata);
    column.set(3, structField(metadata));
  });

const text = (value: string): Field => ({
  type: 8,
  bytes: Buffer.concat([Uint8Array.of(value.length), Buffer.from(value)]),
});

test.each<[string, RegExp, (file: Struct) => void]>([
  ['more rows', /it is to have 12 rows, its row groups have 60000/, (file) => integer(file, rowsOfFile, 12)],
  [
    'a group of fewer rows',
    /row group 2.*column.* values for 9 rows/,
    inLastGroup((group) => integer(group, rowsOfGroup, 9)),
  ],
  [
    'a group of -1 rows',
    /row group 2 is to have -1 rows/,
    inLastGroup((group) => integer(group, rowsOfGroup, -1)),
  ],
  [
    'fewer values',
    /column confirmed has 9 values for 10000 rows/,
    inLastPages((pages) => integer(pages, valuesOfColumn, 9)),
  ],
  [
    'an offset before the begin',
    /column confirmed is to be at bytes -9 to/,
    inLastPages((pages) => integer(pages, pageOfColumn, -9)),
  ],
  [
    'an offset beyond the end',
    /column confirmed is to be at bytes/,
    inLastPages((pages) => integer(pages, pageOfColumn, Number.MAX_SAFE_INTEGER)),
  ],
  [
    'a size beyond the end',
    /column confirmed is to be at bytes/,
    inLastPages((pages) => integer(pages, sizeOfColumn, 1e12)),
  ],
  [
    'an empty column',
    /column confirmed is to be at bytes/,
    inLastPages((pages) => integer(pages, sizeOfColumn, 0)),
  ],
  [
    'columns in one place',
    /two columns are to be at byte/,
    inLastPages((pages) => integer(pages, pageOfColumn, 4)),
  ],
  [
    'a column less',
    /row group 2 has 7 columns instead of 8/,
    inLastGroup((group) => group.set(1, listField(structsOf(field(group, 1)).slice(1)))),
  ],
  [
    'a column in another file',
    /has columns in another file, b.parquet/,
    inLastColumn((column) => column.set(1, text('b.parquet'))),
  ],
  [
    'no place of a column',
    /row group 2, column 8 is to be at bytes NaN/,
    inLastColumn((column) => column.delete(3)),
  ],
  [
    'a column too many in the schema',
    /is a damaged Parquet file: its schema cannot be read/,
    (file) => {
      const [root = new Map(), ...columns] = structsOf(field(file, 2));
      file.set(2, listField([integer(root, childrenOfRoot, columns.length + 1), ...columns]));
    },
  ],
  ['encryption', /is encrypted, which is not supported/, (file) => file.set(8, structField(new Map()))],
  [
    'an encrypted column',
    /is encrypted, which is not supported/,
    inLastColumn((column) => column.set(8, structField(new Map()))),
  ],
])('a footer that lies loads nothing and says so: %s', async (_, reason, change) => {
  writeFileSync(path, changedFooter(honest, change));
  const refusal = load();
  await expect(refusal).rejects.toBeInstanceOf(InputError);
  await expect(refusal).rejects.toThrow(reason);
  await expect(refusal).rejects.toThrow(path);
  expect(await select(db.store, 'SELECT toUInt32(count()) AS events FROM events')).toEqual([{ events: 0 }]);
});

test.each<[string, (whole: Buffer) => Buffer]>([
  ['nothing', () => Buffer.alloc(0)],
  ['text', () => Buffer.from('{"event_id":"a"}\n')],
  ['a file without its last bytes', (whole) => whole.subarray(0, -1_000)],
  ['a file without its second half', (whole) => whole.subarray(0, whole.length >> 1)],
])('%s is no Parquet file, or one that is cut off', async (_, change) => {
  writeFileSync(path, change(honest));
  await expect(load()).rejects.toThrow(`${path}: is not a Parquet file, or it is cut off`);
});

test('a footer that is only written anew is as good, and a row group without rows is nothing', async () => {
  writeFileSync(
    path,
    changedFooter(honest, (file) => {
      const groups = structsOf(field(file, 4));
      const empty = integer(new Map(groups[0]), rowsOfGroup, 0);
      const none = structsOf(field(empty, 1)).map((column) => {
        const metadata = integer(fieldsOf(field(column, 3).bytes), valuesOfColumn, 0);
        return new Map(column).set(3, structField(metadata));
      });
      file.set(4, listField([...groups, empty.set(1, listField(none))]));
    }),
  );
  expect(await load()).toMatchObject({ rows: 60_000, chunks: 1 });
});
