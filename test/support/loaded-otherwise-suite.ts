import { describe, expect, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { defaultMapping } from '../../ingest/event/mapping.ts';
import { mappedReading } from '../../ingest/event/reading.ts';
import { useLoadedFiles } from './loaded-files.ts';
import type { TestStore } from './store.ts';

/** What is read in another way than it was loaded, on a store of any kind. */
export function loadedOtherwise(db: TestStore): void {
  const files = useLoadedFiles(db);
  const { loader, load } = files;

  const header = 'event_time,impressions,spend,cost,advertiser_id,campaign_id';
  const row = (n: number, spend = '1.5') => `2026-03-0${n} 12:00:00,1,${spend},7,${files.account},C`;
  const table = (...rows: readonly string[]) => `${[header, ...rows].join('\n')}\n`;
  const spent = async () => {
    const query = 'SELECT toString(sum(spend)) AS spent FROM events WHERE advertiser_id = {account:String}';
    const [found] = await select<{ spent: string }>(db.store, query, { account: files.account });
    return found?.spent;
  };
  const unknown = '--ignore-unknown';
  const ignoring = mappedReading('e.csv', { ...defaultMapping, ignoreUnknown: true });
  const byCost = ['--set', 'spend=7', unknown];
  const refused = (id: string) =>
    new RegExp(
      `line 2 was already loaded as load ${id}, but read in another way .*adtally unload ${id}.*--again`,
    );

  describe('bytes that are loaded already are not loaded a second time because they are read in another way', () => {
    test.each([
      ['a constant', byCost],
      ['a column', ['--map', 'spend=cost']],
      ['a condition', ['--where', '{cost} > 0', unknown]],
      ['a time zone', ['--timezone', 'Asia/Tokyo', unknown]],
    ])('%s', async (_, flags) => {
      const path = await loader.file('e.csv', table(row(1), row(2)));
      const first = JSON.parse((await loader.ingest(unknown, path)).stdout);
      for (const more of [[], ['--dry-run'], ['--chunk-bytes', '10']]) {
        const again = await loader.ingest(...flags, ...more, path);
        expect(again).toMatchObject({ code: 1, stderr: expect.stringMatching(refused(first.loads[0])) });
      }
      expect(await spent()).toBe('3');
      // As before it is known, and so it is packed or by another name.
      expect(JSON.parse((await loader.ingest(unknown, path)).stdout)).toMatchObject({ repeated_rows: 2 });
    });

    test('the other way round, and from one mapping to another', async () => {
      const path = await loader.file('e.csv', table(row(1)));
      const first = JSON.parse((await loader.ingest(...byCost, path)).stdout);
      for (const flags of [[unknown], ['--timezone', 'Asia/Tokyo', unknown]]) {
        expect((await loader.ingest(...flags, path)).stderr).toMatch(refused(first.loads[0]));
      }
      expect(JSON.parse((await loader.ingest(...byCost, path)).stdout)).toMatchObject({ repeated_rows: 1 });
      expect(await spent()).toBe('7');
    });

    test('in a file that has grown', async () => {
      const first = await load('e.csv', table(row(1), row(2)), { reading: ignoring });
      const grown = await loader.file('grown.csv', table(row(1), row(2), row(3)));
      expect((await loader.ingest(...byCost, grown)).stderr).toMatch(refused(first.loadId ?? ''));
    });

    test('in Parquet', async () => {
      await files.writeByDuckDb(
        'e.parquet',
        `SELECT '2026-03-01' AS event_time, 1 AS impressions, '${files.account}' AS advertiser_id, 'C' AS campaign_id`,
      );
      const { loadId } = await load('e.parquet');
      const path = await loader.file('none', '').then((none) => none.replace(/none$/, 'e.parquet'));
      const again = await loader.ingest('--set', 'spend=7', path);
      expect(again).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(`row 1 was already .*${loadId}`),
      });
      expect(await load('e.parquet')).toMatchObject({ rows: 0, repeatedRows: 1 });
    });
  });

  test('unload, and it can be loaded; --again, and it counts twice', async () => {
    const path = await loader.file('e.csv', table(row(1)));
    const first = JSON.parse((await loader.ingest(unknown, path)).stdout);
    expect((await loader.run(['unload', first.loads[0]])).code).toBe(0);
    expect(JSON.parse((await loader.ingest(...byCost, path)).stdout)).toMatchObject({ rows: 1 });
    expect(await spent()).toBe('7');
    // The ledger knows it so, too, from the load that was taken back.
    expect((await loader.ingest(unknown, path)).stderr).toContain('already loaded as load');
    expect(JSON.parse((await loader.ingest(unknown, '--again', path)).stdout)).toMatchObject({ rows: 1 });
    expect(await spent()).toBe('8.5');
  });

  test('what of a load is rejected waits; what nothing was stored of does not', async () => {
    const bad = table(row(1, 'much'));
    const first = await load('e.csv', bad, { reading: ignoring });
    const path = await loader.file('e.csv', bad);
    expect((await loader.ingest(...byCost, path)).stderr).toMatch(refused(first.loadId ?? ''));
    expect((await loader.run(['rejects', first.loadId ?? '', '--dismiss'])).code).toBe(0);
    expect(JSON.parse((await loader.ingest(...byCost, path)).stdout)).toMatchObject({ rows: 1 });
  });

  test('a load that failed before anything was stored is no obstacle', async () => {
    const bad = table(row(1), row(2, 'much'));
    const path = await loader.file('e.csv', bad);
    expect((await loader.ingest(unknown, '--max-rejects', '0', path)).code).toBe(1);
    expect(JSON.parse((await loader.ingest(...byCost, path)).stdout)).toMatchObject({ rows: 2 });
  });

  test('equal pieces of a file are no other reading', async () => {
    const content = table(...Array.from({ length: 6 }, () => row(1)));
    const reading = mappedReading('e.csv', {
      ...defaultMapping,
      ignoreUnknown: true,
      timezone: { name: 'Asia/Tokyo', place: '' },
    });
    expect(await load('e.csv', content, { chunkBytes: 10, reading })).toMatchObject({ rows: 6 });
    expect(await load('more.csv', `${content}${row(1)}\n`, { chunkBytes: 10, reading })).toMatchObject({
      rows: 1,
    });
  });
}
