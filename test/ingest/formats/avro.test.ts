import { beforeEach, describe, expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { AvroFile } from '../../../ingest/avro/file.ts';
import { avroFields, ownSchema } from '../../../ingest/avro/schema.ts';
import { heldInput } from '../../../ingest/input/held-input.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { type EventLoadOptions, loadEvents } from '../../../ingest/load/load-events.ts';
import type { RejectedRow } from '../../../ingest/rejects/rejected-rows.ts';
import { avroFile, recordOf } from '../../support/avro.ts';
import { useLoader } from '../../support/loader.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const { own, ...loader } = useLoader(db);
const { file, ingest, counted, start } = loader;

const noon = Date.UTC(2026, 2, 1, 12);
const fields = {
  event_id: 'string',
  event_time: { type: 'long', logicalType: 'timestamp-millis' },
  event_type: { type: 'enum', name: 'Kind', symbols: ['impression', 'referral'] },
  quantity: ['null', 'long'],
  advertiser_id: ['null', 'string'],
  campaign_id: ['string', 'null'],
  spend: ['null', { type: 'bytes', logicalType: 'decimal', precision: 18, scale: 6 }],
};
const plain = recordOf(fields);

interface Written {
  readonly event_id: string;
  readonly quantity: number | null;
  readonly spend: Buffer | null;
}

/** Two's complement, most significant byte first, in six bytes. */
function unscaled(micros: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeIntBE(micros, 0, 6);
  return bytes;
}

let events: (Written & Record<string, unknown>)[] = [];
beforeEach(() => {
  events = Array.from({ length: 200 }, (_, n) => ({
    event_id: `é${n}`,
    event_time: noon + n,
    event_type: n % 3 ? 'impression' : 'referral',
    quantity: n % 4 ? n : null,
    advertiser_id: own.account,
    campaign_id: 'c1',
    spend: n % 5 ? unscaled(n * 1_000_001 * (n % 2 ? 1 : -1)) : null,
  }));
});

function load(path: string, options: Partial<EventLoadOptions> = {}) {
  return loadEvents({ store: db.store, input: new LocalFile(path), now: () => new Date(), ...options });
}

function stored() {
  const query = `SELECT event_id, toString(event_time) AS at, toString(impressions) AS impressions,
      toString(referrals) AS referrals, campaign_id, toString(spend) AS spend, device
    FROM events WHERE advertiser_id = {account:String} ORDER BY event_time`;
  return select(db.store, query, { account: own.account });
}

/** Counted again, from what was written. */
function expected() {
  return events.map(({ event_id, quantity, spend }, n) => ({
    event_id,
    at: new Date(noon + n).toISOString().replace('T', ' ').replace('Z', ''),
    impressions: n % 3 ? `${quantity ?? 1}` : '0',
    referrals: n % 3 ? '0' : `${quantity ?? 1}`,
    campaign_id: 'c1',
    spend: spend ? `${spend.readIntBE(0, 6) / 1e6}` : '0',
    device: 'unknown',
  }));
}

describe('every value of a file arrives, and once', () => {
  test.each(['null', 'deflate'])('as avsc writes it with codec %s', async (codec) => {
    events = events.map((each) => (each.quantity === 0 ? { ...each, quantity: null } : each));
    const bytes = await avroFile(plain, events, { codec });
    const path = await file('e.avro', bytes);
    expect(await load(path, { chunkBytes: 1500 })).toMatchObject({
      rows: 200,
      rejectedRows: 0,
      bytes: bytes.length,
    });
    expect(await stored()).toEqual(expected());
    expect(await load(path)).toMatchObject({ rows: 0, repeatedRows: 200 });
    expect(await counted()).toBe(200);
  });

  test.each(['null', 'deflate', 'snappy', 'zstd'])('as ClickHouse writes it with codec %s', async (codec) => {
    const { url, user, password } = db.address;
    const query = `SELECT concat('e', toString(number)) AS event_id, toDateTime64('2026-03-01 12:00:00.123456', 6, 'UTC') AS event_time,
        'impression' AS event_type, '${own.account}' AS advertiser_id, 'c1' AS campaign_id, number % 7 + 1 AS quantity,
        CAST(if(number % 2, NULL, 0.5) AS Nullable(Float64)) AS spend
      FROM numbers(2000) FORMAT Avro SETTINGS output_format_avro_codec = '${codec}', output_format_avro_sync_interval = 4096, output_format_avro_string_column_pattern = '.*'`;
    const response = await fetch(url, {
      method: 'POST',
      body: query,
      headers: { 'x-clickhouse-user': user, 'x-clickhouse-key': password },
    });
    expect(response.status).toBe(200);
    const path = await file('e.avro', Buffer.from(await response.arrayBuffer()));
    expect(await load(path, { chunkBytes: 10_000 })).toMatchObject({ rows: 2000, rejectedRows: 0 });
    const sums = `SELECT toUInt32(sum(impressions)) AS impressions, toString(sum(spend)) AS spend
      FROM events WHERE advertiser_id = {account:String}`;
    const impressions = Array.from({ length: 2000 }, (_, n) => (n % 7) + 1).reduce((a, b) => a + b);
    expect(await select(db.store, sums, { account: own.account })).toEqual([{ impressions, spend: '500' }]);
  });

  test('and ClickHouse reads the schema that was looked at: of two members of a name it would take the first', async () => {
    const campaign = { tipe: 'long', type: 'string', '': 'nobody' };
    const bytes = await avroFile(recordOf({ ...fields, campaign_id: [campaign, 'null'] }), events.slice(1));
    bytes.write('type', bytes.indexOf('tipe'));
    expect(await load(await file('e.avro', bytes))).toMatchObject({ rows: 199, rejectedRows: 0 });
    expect(await stored()).toEqual(expected().slice(1));
  });

  test('from standard input', async () => {
    const bytes = await avroFile(plain, events.slice(1));
    const first = await start(['ingest', 'events', '--json', '--format', 'avro', '-'], bytes).ended;
    expect(first.code, first.stderr).toBe(0);
    expect(await load(await file('e.avro', bytes))).toMatchObject({ rows: 0, repeatedRows: 199 });
  });
});

test('a file that has grown by blocks adds only these', async () => {
  const whole = await avroFile(plain, events.slice(1));
  const marker = Buffer.from('a marker of 16 b');
  const ends: number[] = [];
  for (let at = whole.indexOf(marker); at >= 0; at = whole.indexOf(marker, at + 1)) ends.push(at + 16);
  expect(ends.length).toBeGreaterThan(12);
  let rows = 0;
  // The header alone, then more and more blocks.
  for (const end of [ends[0], ends[3], ends[4], ends[9], ends.at(-1)]) {
    const result = await load(await file('e.avro', whole.subarray(0, end)), { chunkBytes: 1500 });
    expect(result.repeatedRows).toBe(rows);
    rows += result.rows;
    expect(await counted()).toBe(rows);
  }
  expect(rows).toBe(199);
});

test('thousands of blocks without records, in memory, let others have their turn', async () => {
  const whole = await avroFile(plain, []);
  const empty = Buffer.concat([Buffer.alloc(2), whole.subarray(-16)]);
  const bytes = Buffer.concat([whole, ...Array.from({ length: 30_000 }, () => empty)]);
  let turned = false;
  setImmediate(() => {
    turned = true;
  });
  const opened = await AvroFile.open(heldInput('e.avro', ['avro'], bytes), () => {}, undefined);
  expect(await opened.next()).toBeUndefined();
  expect(turned).toBe(true);
});

test('types of every kind are read, by a mapping and through nested records', async () => {
  const schema = recordOf({
    id: { type: 'fixed', name: 'Id', size: 4 },
    other: ['null', 'ads.log.Id'],
    day: { type: 'int', logicalType: 'date' },
    local: ['null', { type: 'long', logicalType: 'local-timestamp-micros' }],
    who: {
      type: 'record',
      name: 'Who',
      fields: [
        { name: 'account', type: 'bytes' },
        { name: 'campaign', type: ['null', 'string'] },
      ],
    },
    seller: 'Who',
    money: { type: 'fixed', name: 'Money', size: 5, logicalType: 'decimal', precision: 11, scale: 2 },
    share: { type: 'float', items: 'null', values: [1, 2] },
    nulls: { type: 'array', items: ['null'] },
    sure: ['boolean', 'null'],
    tags: { type: 'array', items: { type: 'enum', name: 'Tag', symbols: ['a', 'b'] } },
    tag: 'Tag',
    times: { type: 'long', logicalType: 'constructor' },
    more: { type: 'map', values: ['null', 'Who'] },
  });
  const record = {
    ...{ id: Buffer.from('abcd'), other: null, day: 20_513, local: (noon + 1) * 1000 + 7 },
    ...{ who: { account: Buffer.from(own.account), campaign: 'ü' }, money: Buffer.from('fffffffb2e', 'hex') },
    ...{
      share: 0.1,
      sure: true,
      nulls: [null, null],
      times: 1,
      tags: ['a', 'b'],
      tag: 'b',
      more: { x: null },
    },
    seller: { account: Buffer.from('shop'), campaign: null },
  };
  const bytes = await avroFile(schema, [
    record,
    { ...record, other: Buffer.from('wxyz'), local: null, sure: null },
  ]);
  const mapped = [
    ...['--map=advertiser_id=who.account', '--map=campaign_id=who.campaign', '--map=event_id=id'],
    ...['--map=spend=money', '--map=revenue=share', '--map=confirmed=sure', '--map=creative_id=other'],
    ...['--map=publisher_id=seller.account', '--set=ad_unit_id=u', '--set=event_type=impression'],
    ...['--map=device=tag', '--map=quantity=times', '--ignore-unknown', '--timezone=Europe/Berlin'],
  ];
  const path = await file('e.avro', bytes);
  const byDay = await ingest(...mapped, '--map', 'event_time=day', path);
  expect(byDay.code, byDay.stderr).toBe(0);
  const query = `SELECT event_id, creative_id, campaign_id, publisher_id, toString(spend) AS spend, confirmed, device, toString(event_time) AS at
    FROM events WHERE advertiser_id = {account:String} ORDER BY creative_id`;
  const one = {
    ...{ event_id: 'abcd', campaign_id: 'ü', publisher_id: 'shop', spend: '-12.34' },
    ...{ device: 'b', at: '2026-03-01 00:00:00.000' },
  };
  expect(await select(db.store, query, { account: own.account })).toEqual([
    { ...one, creative_id: '', confirmed: true },
    { ...one, creative_id: 'wxyz', confirmed: false },
  ]);
  const byTime = await ingest(...mapped, '--again', '--map', 'event_time=local', path);
  expect(byTime.code).toBe(4);
  const local = `SELECT toString(event_time) AS at FROM events WHERE advertiser_id = {account:String} AND event_time > '2026-03-01 01:00:00'`;
  // Noon in Berlin.
  expect(await select(db.store, local, { account: own.account })).toEqual([
    { at: '2026-03-01 11:00:00.001' },
  ]);
});

test('faulty records are named by their number, and the others loaded', async () => {
  for (const n of [7, 150]) Object.assign(events[n] ?? {}, { campaign_id: null });
  const rejected: RejectedRow[] = [];
  const path = await file('e.avro', await avroFile(plain, events.slice(1)));
  expect(await load(path, { dryRun: true })).toMatchObject({ rows: 197, rejectedRows: 2 });
  expect(await counted()).toBe(0);
  const result = await load(path, { chunkBytes: 1500, onRejected: (row) => rejected.push(row) });
  expect(result).toMatchObject({ rows: 197, rejectedRows: 2 });
  expect(rejected.map(({ line }) => line).sort((a, b) => a - b)).toEqual([7, 150]);
});

describe('a file that cannot be read is refused with what is wrong, and nothing is loaded', () => {
  const refused = async (bytes: Buffer, message: RegExp) => {
    const path = await file('e.avro', bytes);
    await expect(load(path)).rejects.toThrow(message);
    expect(await counted()).toBe(0);
  };

  test('damaged', async () => {
    const bytes = await avroFile(plain, events.slice(1));
    const header = bytes.indexOf('a marker of 16 b') + 16;
    const second = bytes.indexOf('a marker of 16 b', header);
    const changed = (at: number, to: number) => {
      const copy = Buffer.from(bytes);
      copy[at] = to;
      return copy;
    };
    await refused(changed(0, 0), /e\.avro: is not an Avro file: .* byte 0/);
    await refused(Buffer.alloc(0), /is not an Avro file/);
    await refused(bytes.subarray(0, 40), /it ends at byte 40, within the header/);
    await refused(
      bytes.subarray(0, -1),
      new RegExp(`it ends at byte ${bytes.length - 1}, within the block at byte`),
    );
    await refused(
      changed(second, 0),
      new RegExp(`the block at byte ${header} does not end .* at byte ${second}`),
    );
    // One more record than there are.
    await refused(
      changed(header, (bytes[header] ?? 0) + 2),
      /e\.avro: is a damaged Avro file: .*EOF reached/,
    );
    await refused(changed(header, 1), /is to have -1 records/);
    // A million entries in 2 MiB would be 770 MB in memory.
    const entries = Buffer.concat([bytes.subarray(0, 4), Buffer.from([0x80, 0x80, 0x80, 0x01])]);
    await refused(entries, /the header is to have 1048576 entries; over 1000 cannot be read/);
    await refused(changed(header, 0), /is to have no records in \d+ bytes/);
  });

  /** What the types of a schema are called. */
  const called = (...types: unknown[]) => {
    const schema = recordOf(Object.fromEntries(types.map((type, n) => [`f${n}`, type])));
    return avroFields('e.avro', JSON.stringify(schema)).map((each) => each.called);
  };
  const record = (name: string, type: unknown) => ({ type: 'record', name, fields: [{ name: 'a', type }] });
  const nothing = record('Nothing', 'null');
  const emptyEntries = 'an array whose entries take no bytes';

  test('whatever a name of a type that Avro does not name, or a second definition, says', () => {
    const list = { type: 'array', items: 'Nothing' };
    expect(() => called(nothing, { type: 'string', name: 'Nothing' }, list)).toThrow(
      `column f2 is ${emptyEntries}`,
    );
    const map = { type: 'map', name: 'Event', values: 'int' };
    expect(() => called(map, ['null', 'Event'])).toThrow('column f1 is a record within itself');
    expect(() => called(nothing, { ...list, items: record('Nothing', 'int') })).toThrow(
      'e.avro: the schema in its header defines ads.log.Nothing twice, and not alike',
    );
    expect(() => called(record('A', record('A', 'int')))).toThrow('column f0.a is a record within itself');
    expect(called(record('A', 'int'), record('A', 'int'))).toEqual(['int', 'int']);
  });

  test('of another codec, or without what an event needs', async () => {
    const bytes = await avroFile(plain, events.slice(1));
    const codec = Buffer.from(bytes.toString('latin1').replace('\x08null', '\x08lzma'), 'latin1');
    await refused(codec, /is packed with lzma.*null, deflate, snappy, zstandard/);
    const { event_time: _, ...timeless } = fields;
    await refused(await avroFile(recordOf(timeless), events), /column event_time is missing/);
    await refused(
      await avroFile(recordOf({ ...fields, extra: ['null', 'int'] }), []),
      /column extra is not a field/,
    );
    const list = recordOf({ ...fields, campaign_id: { type: 'array', items: 'string' } });
    await refused(await avroFile(list, []), /column campaign_id is of type array; write it as plain values/);
    const union = recordOf({ ...fields, campaign_id: ['null', 'string', 'long'] });
    await refused(await avroFile(union, []), /column campaign_id is a union of string, long; write it as/);
    for (const [name, type] of [
      ['campaign_id', ['null', 'Event']],
      // Nothing is read of it, and ClickHouse would come to the end of its stack.
      ['parents', { type: 'array', items: ['null', 'Event'] }],
    ] as const) {
      const itself = recordOf({ ...fields, [name]: type });
      const message = new RegExp(
        `e\\.avro: column ${name} is a record within itself; write .*, or leave it out`,
      );
      await refused(await avroFile(itself, []), message);
    }
    const decimal = { type: 'bytes', logicalType: 'decimal', scale: 2 };
    await refused(
      await avroFile(recordOf({ ...fields, spend: decimal }), []),
      /e\.avro: column spend is a decimal of precision 0 and scale 2; write/,
    );
    const wide = { ...decimal, type: 'fixed', name: 'Money', size: 9, precision: 18 };
    await refused(
      await avroFile(recordOf({ ...fields, spend: wide }), []),
      /column spend is a decimal of 18 digits in 9 bytes instead of 8; write/,
    );
    const padded = Object.assign(events[1] ?? {}, { spend: Buffer.alloc(12) });
    await refused(
      await avroFile(plain, [padded]),
      /e\.avro: its records cannot be read: Cannot parse type Decimal.*got 12/,
    );
    await refused(await avroFile('long' as never, []), /its values are not records/);
    // A few bytes say that there are 2^60 of these, and ClickHouse counts to there.
    for (const extra of [
      { type: 'array', items: 'null' },
      { type: 'map', values: ['null', { type: 'array', items: nothing }] },
    ]) {
      const schema = recordOf({ ...fields, extra });
      await refused(await avroFile(schema, []), new RegExp(`column extra is ${emptyEntries}`));
    }
    await refused(
      await avroFile({ ...Object(plain), doc: 'a'.repeat(1 << 20) }, []),
      /e\.avro: the schema in its header has over 1048576 characters, which cannot be read/,
    );
    // ClickHouse would come to the end of its stack.
    const deep = `{"type":"record","name":"e","fields":[],"doc":${'['.repeat(1e5)}${']'.repeat(1e5)}}`;
    expect(() => ownSchema('e.avro', deep)).toThrow('e.avro: the schema in its header is no Avro schema');
    // Read anew wherever the record is named.
    const unions = record(
      'Wide',
      Array.from({ length: 300 }, () => 'int'),
    );
    expect(() => called(unions, ...Array.from({ length: 1000 }, () => 'Wide'))).toThrow(
      'e.avro: the schema in its header has over 200000 types',
    );
    // Each names the next one twice: a schema of some lines would have 2^60 columns.
    const doubled = Array.from({ length: 60 }).reduce<object>(
      (inner, _, n) => ({
        ...{ type: 'record', name: `r${n + 1}` },
        fields: [
          { name: 'a', type: inner },
          { name: 'b', type: `r${n}` },
        ],
      }),
      { type: 'record', name: 'r0', fields: [] },
    );
    await refused(
      await avroFile(recordOf({ ...fields, doubled }), []),
      /schema in its header has over 20000 fields/,
    );
  });
});
