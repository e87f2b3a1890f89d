import { parse } from 'lossless-json';
import { beforeAll, describe, expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { rollups } from '../../clickhouse/rollups.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import { exportedReports } from '../../src/http/export/paths.ts';
import { reportFormats } from '../../src/report/formats.ts';
import { withFile } from '../support/events.ts';
import { decimal, groupings, type Key, micros, paths } from '../support/oracle.ts';
import { seededRandom, testSeed } from '../support/random.ts';
import { type JsonRow, readers, tableOf } from '../support/readers.ts';
import { type Counted, differences } from '../support/recount.ts';
import { useService } from '../support/service.ts';
import { onEveryShard, useStore } from '../support/store.ts';

const db = useStore();
const service = useService(db);

/** The greatest that an event may have. */
const mostCount = 999_999_999_999_999n;
/** Of money, in millionths. */
const mostMoney = 999_999_999_999_999_999n;
/** The coarsest and the finest of each family, without days and by day. */
const some = paths.filter((path) => /^\/v1\/[a-z_]+$|device_(creative|site)_date$/.test(path));
const march = { start_time: '2026-03-01', end_time: '2026-03-31' };
const accepting = (format: keyof typeof reportFormats) => ({ accept: reportFormats[format].mediaType });

const counts = ['ad_requests', 'impressions', 'referrals', 'conversions'] as const;
const csvColumns = [
  ...['event_id', 'event_time', 'advertiser_id', 'campaign_id', 'creative_id', 'publisher_id', 'ad_unit_id'],
  ...['site_id', 'device', ...counts, 'spend', 'revenue'],
] as const;

/** An event of one account in both roles, with nothing in it. */
function eventOf(account: string, more: Partial<Counted>): Counted {
  return {
    ...{ event_id: '', event_time: '2026-03-02 12:00:00.000', advertiser_id: account, publisher_id: account },
    ...{ campaign_id: 'c', creative_id: 'k', ad_unit_id: 'u', site_id: 's', device: 'tv', confirmed: false },
    ...{
      ad_requests: 0n,
      impressions: 0n,
      referrals: 0n,
      conversions: 0n,
      spend: 0n,
      revenue: 0n,
      reason: '',
    },
    ...more,
  };
}

const cell = (event: Counted, name: (typeof csvColumns)[number]) =>
  name === 'spend' || name === 'revenue' ? decimal(event[name]).value : String(event[name as keyof Counted]);

/** Through the loader. */
async function load(events: readonly Counted[]): Promise<void> {
  const rows = events.map((event) => csvColumns.map((column) => cell(event, column)).join(','));
  const now = () => new Date('2026-04-01T00:00:00Z');
  const loaded = await withFile('events.csv', [csvColumns.join(','), ...rows, ''].join('\n'), (file) =>
    loadEvents({ store: db.store, input: new LocalFile(file), chunkBytes: 1 << 20, now }),
  );
  expect([loaded.rows, loaded.rejectedRows]).toEqual([events.length, 0]);
}

const total = (events: readonly Counted[], name: (typeof counts)[number] | 'spend' | 'revenue') =>
  events.reduce((sum, event) => sum + event[name], 0n);

/** Millionths; cut off after the seventh place, then rounded half away from zero. */
function divide(numerator: bigint, denominator: bigint): bigint {
  if (denominator === 0n) return 0n;
  const size = numerator < 0n ? -numerator : numerator;
  const rounded = (10n * size) / denominator;
  return ((rounded + 5n) / 10n) * (numerator < 0n ? -1n : 1n);
}

/** What a report says of these events, in digits. */
function figures(path: string, events: readonly Counted[]): Record<string, string> {
  const [impressions, referrals] = [total(events, 'impressions'), total(events, 'referrals')];
  if (path.startsWith('/v1/campaigns')) {
    const [conversions, spent] = [total(events, 'conversions'), total(events, 'spend')];
    return {
      cpa: decimal(divide(spent, conversions)).value,
      cpc: decimal(divide(spent, referrals)).value,
      cpm: decimal(divide(1000n * spent, impressions)).value,
      ...{ impressions: `${impressions}`, conversions: `${conversions}`, referrals: `${referrals}` },
      spent: decimal(spent).value,
    };
  }
  const [requests, revenue] = [total(events, 'ad_requests'), total(events, 'revenue')];
  return {
    estimated_revenue: decimal(revenue).value,
    ...{ ad_requests: `${requests}`, impressions: `${impressions}`, referrals: `${referrals}` },
    cpm: decimal(divide(1000n * revenue, impressions)).value,
    fill_rate: decimal(divide(1_000_000n * impressions, requests)).value,
    rtr: decimal(divide(1_000_000n * referrals, impressions)).value,
  };
}

const keyColumns: Readonly<Record<Exclude<Key, 'day'>, keyof Counted>> = {
  campaign: 'campaign_id',
  ad_unit: 'ad_unit_id',
  device: 'device',
  creative: 'creative_id',
  site: 'site_id',
};

/** The figures of each row of a report, without its texts, in any order. */
function recount(path: string, events: readonly Counted[]): string[] {
  const groups = new Map<string, Counted[]>();
  for (const event of events) {
    const of = (key: Key) => (key === 'day' ? event.event_time.slice(0, 10) : event[keyColumns[key]]);
    const key = (groupings[path] ?? []).map(of).join();
    const group = groups.get(key);
    if (group) group.push(event);
    else groups.set(key, [event]);
  }
  return [...groups.values()].map((group) => Object.values(figures(path, group)).join()).sort();
}

/** The figures of a row, or of totals, in digits. */
const figuresOf = (path: string, row: JsonRow) =>
  Object.fromEntries(Object.keys(figures(path, [])).map((name) => [name, `${row[name]}`]));

interface Result {
  readonly rows: JsonRow[];
  readonly totals: JsonRow;
}

async function ask(path: string, account: string, body: object = march): Promise<Result> {
  const response = await service.post(path, account, body);
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return (parse(text) as { result: Result }).result;
}

describe('sums above 2^64', () => {
  const account = 'large';
  const most = {
    ad_requests: mostCount,
    impressions: mostCount,
    referrals: mostCount,
    conversions: mostCount,
  };
  // 64 bits are full with 18,447 events of the greatest count.
  const second = Array.from({ length: 18_500 }, () =>
    eventOf(account, { ...most, spend: mostMoney, revenue: -mostMoney }),
  );
  const third = Array.from({ length: 100 }, () =>
    eventOf(account, {
      ...{ ...most, event_time: '2026-03-03 12:00:00.000', ad_requests: 1n, conversions: 1n },
      ...{ spend: -mostMoney, revenue: 1n },
    }),
  );
  const dayOf = (date: string) => ({ start_time: date, end_time: date });
  beforeAll(() => load([...second, ...third]));

  test.each(paths)('are exact in rows, ratios and totals: %s', async (path) => {
    const { rows, totals } = await ask(path, account, { ...march, totals: true });
    const days = groupings[path]?.includes('day') ? [second, third] : [[...second, ...third]];
    expect(rows.map((row) => figuresOf(path, row))).toEqual(days.map((day) => figures(path, day)));
    expect(figuresOf(path, totals)).toEqual(figures(path, [...second, ...third]));
  });

  test.each(some)('are exact in what is compared, and in the change: %s', async (path) => {
    for (const [date, other, now, before] of [
      ['2026-03-03', '2026-03-02', third, second],
      ['2026-03-02', '2026-03-03', second, third],
    ] as const) {
      const body = { ...dayOf(date), compare_to: dayOf(other), totals: true };
      const { rows, totals } = await ask(path, account, body);
      const [current, compared] = [figures(path, now), figures(path, before)];
      const expected = Object.keys(current).flatMap((name) => {
        return [
          [name, current[name]],
          [`${name}_compared`, compared[name]],
          [`${name}_change`, decimal(micros(current[name]) - micros(compared[name])).value],
        ];
      });
      for (const row of [...rows, totals])
        expect(
          Object.entries(row)
            .slice(-21)
            .map(([name, value]) => [name, `${value}`]),
        ).toEqual(expected);
      expect(rows).toHaveLength(1);
    }
  });

  test.each(['csv', 'ndjson'] as const)('are exact in %s, and in its headers', async (format) => {
    for (const path of some) {
      const response = await service.post(path, account, { ...march, totals: true }, accepting(format));
      expect(response.status).toBe(200);
      const { rows } = await ask(path, account);
      expect(await readers[format](Buffer.from(await response.arrayBuffer()))).toEqual(tableOf(rows));
      const said = Object.entries(figures(path, [...second, ...third])).map(
        ([name, value]) => `${name}="${value}"`,
      );
      expect(response.headers.get('adtally-totals')).toBe(said.join(', '));
    }
  });

  test.each(['arrow', 'parquet'] as const)(
    'are no report in %s, which has no such numbers',
    async (format) => {
      const refused = {
        code: 'not_acceptable',
        detail: expect.stringContaining('ask for JSON, NDJSON or CSV'),
      };
      for (const path of some) {
        const response = await service.post(path, account, march, accepting(format));
        expect([path, response.status]).toEqual([path, 406]);
        expect(await response.json()).toMatchObject(refused);
      }
      const authorization = `Bearer ${await service.token(account)}`;
      const exports = exportedReports(catalog).filter((each) => each.format === format);
      for (const exported of exports.filter(({ endpoint }) => some.includes(endpoint.path))) {
        const address = `${service.url}${exported.path}?${new URLSearchParams(march)}`;
        const response = await fetch(address, { headers: { authorization } });
        expect([address, response.status]).toEqual([address, 406]);
        expect(await response.json()).toMatchObject(refused);
      }
    },
  );

  test('leave the other columns and days to Arrow and Parquet', async () => {
    for (const format of ['arrow', 'parquet'] as const) {
      for (const body of [{ ...march, metrics: ['spent', 'cpm'] }, dayOf('2026-03-03')]) {
        const response = await service.post('/v1/campaigns', account, body, accepting(format));
        expect(response.status).toBe(200);
        const { rows } = await ask('/v1/campaigns', account, body);
        expect(await readers[format](Buffer.from(await response.arrayBuffer()))).toEqual(tableOf(rows));
      }
    }
  });
});

test.each(['arrow', 'parquet'] as const)(
  '%s has the greatest number of 64 bits, its change, and no greater one',
  async (format) => {
    const most = 2n ** 63n - 1n;
    const account = `edge ${format}`;
    const insert = (day: string, referrals: bigint) =>
      db.store.insert({
        table: 'campaigns_device_creative_date',
        values: [
          {
            account_id: account,
            day,
            campaign_id: 'c',
            device: 'tv',
            creative_id: '',
            referrals: `${referrals}`,
          },
        ],
        format: 'JSONEachRow',
      });
    await insert('2026-03-02', most);
    const [second, third] = ['2026-03-02', '2026-03-03'].map((day) => ({ start_time: day, end_time: day }));
    const body = { metrics: ['referrals'], compare_to: second };
    const post = (asked: object) => service.post('/v1/campaigns', account, asked, accepting(format));
    for (const [range, digits] of [
      [second, [`${most}`, `${most}`, '0']],
      [third, ['0', `${most}`, `-${most}`]],
    ] as const) {
      const { rows } = await readers[format](
        Buffer.from(await (await post({ ...range, ...body })).arrayBuffer()),
      );
      expect(rows.map((row) => row.slice(-3))).toEqual([digits]);
    }
    await insert('2026-03-03', 1n);
    expect((await post({ ...third, ...body })).status).toBe(200);
    expect((await post({ ...march, ...body })).status).toBe(406);
  },
);

describe(`events of chance, as large as they may be (TEST_SEED=${testSeed})`, () => {
  const random = seededRandom(testSeed);
  const below = (limit: number) => Math.floor(random() * limit);
  const one = <T>(choices: readonly [T, ...T[]]): T => choices[below(choices.length)] ?? choices[0];
  const count = () => (below(3) ? mostCount : one([0n, 1n, mostCount - 1n, BigInt(below(2 ** 32))]));
  const money = () => one([mostMoney, mostMoney, -mostMoney, 0n, 1n, -1n, BigInt(below(2 ** 40))]);
  const account = 'chance';
  const events = Array.from({ length: 45_000 }, () =>
    eventOf(account, {
      ...{ event_time: `2026-03-0${1 + below(2)} 12:00:00.000`, device: one(['tv', 'mobile']) },
      ...{ campaign_id: below(20) ? 'c' : 'd', ad_unit_id: below(20) ? 'u' : 'v' },
      ...{ ad_requests: count(), impressions: count(), referrals: count(), conversions: count() },
      ...{ spend: money(), revenue: money() },
    }),
  );
  beforeAll(() => load(events));

  test('every table has the sums of a recount, also when its parts are merged', async () => {
    expect(await differences(db.store, account, events)).toEqual([]);
    for (const { table } of rollups(catalog)) await onEveryShard(db, `OPTIMIZE TABLE ${table} FINAL`);
    expect(await differences(db.store, account, events)).toEqual([]);
  });

  test.each(some)('every figure is that of a recount: %s', async (path) => {
    const { rows, totals } = await ask(path, account, { ...march, totals: true });
    expect(rows.map((row) => Object.values(figuresOf(path, row)).join()).sort()).toEqual(
      recount(path, events),
    );
    expect(figuresOf(path, totals)).toEqual(figures(path, events));
  });
});
