import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { useLoadedFiles } from '../../support/loaded-files.ts';
import { useStore } from '../../support/store.ts';

// What was once read wrongly, refused or lost.
const db = useStore();
const { load, events, rejects, writeByDuckDb } = useLoadedFiles(db);

const counts = { rejectedRows: 0, repeatedRows: 0, openRejects: 0 };

describe('NULL in Parquet is no value', () => {
  const one = (id: number, fields: string, type = 'impression') =>
    `SELECT 'n${id}' AS event_id, TIMESTAMP '2026-01-31 12:00:00' AS event_time, '${type}' AS event_type, ${fields}`;
  const fields = (advertiser: string, adUnit: string, types = ['BIGINT', 'INTEGER', 'TINYINT']) =>
    `CAST(${advertiser} AS ${types[0]}) AS advertiser_id, CAST(${advertiser} AS ${types[0]}) AS campaign_id,
     CAST(NULL AS ${types[0]}) AS creative_id, CAST(9 AS ${types[0]}) AS publisher_id,
     CAST(${adUnit} AS ${types[1]}) AS ad_unit_id, CAST(NULL AS ${types[1]}) AS site_id,
     CAST(NULL AS ${types[2]}) AS device, CAST(NULL AS DECIMAL(9, 2)) AS revenue, CAST(1.5 AS DECIMAL(9, 2)) AS spend`;
  const stored = {
    ...{
      campaign_id: '',
      creative_id: '',
      publisher_id: '9',
      ad_unit_id: '5',
      site_id: '',
      device: 'unknown',
    },
    ...{ advertiser_id: '', impressions: '1', spend: '1.5', revenue: '0' },
  };

  test.each([0, 1])('in ids of numbers by DuckDB, beside %i bad rows', async (bad) => {
    const rows = [one(1, fields('NULL', '5')), one(2, fields('7', '5'))];
    if (bad) rows.push(one(3, fields('7', '5'), 'click'), one(4, fields('7', 'NULL')));
    await writeByDuckDb('n.parquet', rows.join(' UNION ALL '));
    const loaded = await load('n.parquet');
    expect(await rejects(loaded)).toMatchObject(
      bad
        ? [
            { line: 3, fields: ['event_type'] },
            { line: 4, fields: ['ad_unit_id'] },
          ]
        : [],
    );
    expect(await events(loaded)).toMatchObject([stored, { ...stored, advertiser_id: '7', campaign_id: '7' }]);
  });

  test('in ids of numbers by ClickHouse', async () => {
    const types = ['Nullable(Int64)', 'Nullable(UInt64)', 'Nullable(Int8)'];
    const query = `${one(1, fields('NULL', '5', types))
      .replaceAll(/DECIMAL\(9, 2\)/g, 'Nullable(Decimal(9, 2))')
      .replace('TIMESTAMP', '')} FORMAT Parquet`;
    const { stream } = await db.store.exec({ query });
    const loaded = await load('c.parquet', await buffer(stream));
    expect(loaded).toMatchObject({ ...counts, rows: 1 });
    expect(await events(loaded)).toMatchObject([stored]);
  });

  test.each(['BIGINT', 'INTEGER', 'UBIGINT', 'DOUBLE', 'DECIMAL(18, 3)', 'VARCHAR'])(
    'a quantity of %s is 1 where it is NULL',
    async (type) => {
      const side = `'X' AS advertiser_id, 'C' AS campaign_id, CAST`;
      const rows = ['NULL', '3'].map((value, n) => one(n, `${side}(${value} AS ${type}) AS quantity`));
      await writeByDuckDb('q.parquet', rows.join(' UNION ALL '));
      const loaded = await load('q.parquet');
      expect(loaded).toMatchObject({ ...counts, rows: 2 });
      expect((await events(loaded)).map(({ impressions }) => impressions)).toEqual(['1', '3']);
    },
  );

  test('an event_id of numbers is empty where it is NULL', async () => {
    const rest = `TIMESTAMP '2026-01-31 12:00:00' AS event_time, 'impression' AS event_type, 'X' AS advertiser_id, 'C' AS campaign_id`;
    await writeByDuckDb('id.parquet', `SELECT CAST(NULL AS BIGINT) AS event_id, ${rest}`);
    expect(await events(await load('id.parquet'))).toMatchObject([{ event_id: '', impressions: '1' }]);
  });
});

describe('an odd value of Parquet is a bad row and holds up no other', () => {
  const one = (id: string, value: string, type = 'impression') =>
    `SELECT '${id}' AS event_id, ${value}, '${type}' AS event_type, 'X' AS advertiser_id`;
  const at = (value: string) => `${value} AS event_time, 'C' AS campaign_id`;

  test.each([0, 1])('text that is not UTF-8, beside %i bad rows', async (bad) => {
    const blob = (value: string) =>
      `TIMESTAMP '2026-01-31 12:00:00' AS event_time, CAST('${value}' AS BLOB) AS campaign_id`;
    const rows = [one('a', blob('C')), one('b', blob('\\xFF\\xFE'))];
    if (bad) rows.push(one('c', blob('C'), 'click'));
    await writeByDuckDb('blob.parquet', rows.join(' UNION ALL '));
    const loaded = await load('blob.parquet');
    expect(await events(loaded)).toMatchObject([{ event_id: 'a', campaign_id: 'C' }]);
    const wrong = (await rejects(loaded)).map(({ line, fields }) => [line, ...fields]);
    expect(wrong).toEqual([[2, 'campaign_id'], ...(bad ? [[3, 'event_type']] : [])]);
  });

  test('halves of a character in columns beside each other', async () => {
    const texts = (campaign: string, creative: string) =>
      `TIMESTAMP '2026-01-31 12:00:00' AS event_time, CAST('${campaign}' AS BLOB) AS campaign_id, CAST('${creative}' AS BLOB) AS creative_id`;
    const rows = [one('a', texts('C', '\\xC3\\xA9')), one('b', texts('C\\xC3', '\\xA9'))];
    await writeByDuckDb('halves.parquet', rows.join(' UNION ALL '));
    const loaded = await load('halves.parquet');
    expect(await events(loaded)).toMatchObject([{ event_id: 'a' }]);
    expect((await rejects(loaded)).map(({ line, fields }) => [line, ...fields])).toEqual([
      [2, 'campaign_id', 'creative_id'],
    ]);
  });

  test.each(['TIMESTAMP', 'TIMESTAMPTZ'])('a %s of infinity', async (type) => {
    const rows = ['2026-01-31 12:00:00', 'infinity', '-infinity'].map((value, n) =>
      one(`i${n}`, at(`${type} '${value}'`)),
    );
    await writeByDuckDb('infinity.parquet', rows.join(' UNION ALL '));
    const loaded = await load('infinity.parquet');
    expect(await events(loaded)).toMatchObject([{ event_id: 'i0', event_time: '2026-01-31 12:00:00.000' }]);
    expect((await rejects(loaded)).map(({ line, fields }) => [line, ...fields])).toEqual([
      [2, 'event_time'],
      [3, 'event_time'],
    ]);
  });

  test('a DATE is that day', async () => {
    await writeByDuckDb(
      'date.parquet',
      `${one('d', at("DATE '2026-03-01'"))} UNION ALL ${one('n', at('NULL'))}`,
    );
    const loaded = await load('date.parquet');
    expect(await events(loaded)).toMatchObject([{ event_id: 'd', event_time: '2026-03-01 00:00:00.000' }]);
    expect(await rejects(loaded)).toMatchObject([{ line: 2, fields: ['event_time'] }]);
  });
});
