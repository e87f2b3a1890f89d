import assert from 'node:assert/strict';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { type Address, connect, type Store } from '../clickhouse/client.ts';
import { catalog } from '../src/catalog.ts';
import { compileReport } from '../src/report/compile.ts';
import { planReport } from '../src/report/plan.ts';
import { createToken } from '../src/tokens.ts';
import { type Comparison, compare } from './measure.ts';
import { startServiceProcess } from './service.ts';

const path = '/v1/campaigns/breakdowns/device_creative_date';
const account = 'bench-advertiser';
const range = { start: '2026-01-01', end: '2026-03-31' };
/** 90 days × 60 campaigns × 3 devices × 20 creatives, each in two parts that merge while they are read. */
const rows = 324_000;

/**
 * The most granular report over HTTP from the service, against the same SQL asked of ClickHouse directly with
 * FORMAT JSONEachRow; both read to the last byte by the same client.
 */
export async function edge(address: Address, runs: number): Promise<Comparison[]> {
  const store = connect(address);
  await fill(store);
  const token = await createToken(store, { account, label: 'bench' });
  const service = await startServiceProcess(address);
  try {
    const statement = compileReport(
      catalog,
      planReport({ family: 'campaigns', dimensions: ['device', 'creative'], day: true }, account, range),
      { lastUpdateTime: '', unconfirmedDates: [] },
    );
    const direct = (): Promise<IncomingMessage> => {
      const params = new URLSearchParams({
        database: address.database,
        output_format_json_quote_decimals: '0',
      });
      for (const [name, value] of Object.entries(statement.params)) params.set(`param_${name}`, value);
      params.set('optimize_aggregation_in_order', String(statement.settings.optimize_aggregation_in_order));
      return post(
        `${address.url}/?${params}`,
        statement.query.replace('FORMAT Template', 'FORMAT JSONEachRow'),
        {
          'x-clickhouse-user': address.user,
          'x-clickhouse-key': address.password,
        },
      );
    };
    const report = (encoding: string): Promise<IncomingMessage> =>
      post(`${service.url}${path}`, JSON.stringify({ start_time: range.start, end_time: range.end }), {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'accept-encoding': encoding,
      });

    await assertSameRows(await text(await report('identity')), await text(await direct()));
    const theirs = { name: 'ClickHouse, JSONEachRow', run: async () => drain(await direct()) };
    const comparisons: Comparison[] = [];
    for (const encoding of ['identity', 'zstd', 'gzip']) {
      const ours = { name: `adtally, ${encoding}`, run: async () => drain(await report(encoding)) };
      comparisons.push(await compare(`${rows} rows, ${encoding}`, ours, theirs, runs));
    }
    return comparisons;
  } finally {
    await service.stop();
    await store.close();
  }
}

async function fill(store: Store): Promise<void> {
  for (let part = 0; part < 2; part++) {
    await store.command({
      query: `INSERT INTO campaigns_device_creative_date
        (account_id, day, campaign_id, device, creative_id, impressions, conversions, referrals, spent)
        SELECT '${account}', toDate('${range.start}') + number % 90, concat('campaign-', toString(intDiv(number, 90) % 60)),
               ['desktop', 'mobile', 'tablet'][1 + intDiv(number, 5400) % 3], concat('creative-', toString(intDiv(number, 16200))),
               cityHash64(number, ${part}) % 100000, cityHash64(number, 1) % 50, cityHash64(number, 2) % 1000,
               toDecimal64(cityHash64(number, 3) % 1000000 / 1000, 6)
        FROM numbers(${rows})`,
    });
  }
}

/** A fast answer that is wrong is worth nothing: the rows must be the same before anything is timed. */
async function assertSameRows(envelope: string, lines: string): Promise<void> {
  const fields = [
    'campaign',
    'device',
    'creative_id',
    'cpm',
    'impressions',
    'conversions',
    'referrals',
    'spent',
  ];
  const key = (row: Record<string, unknown>) =>
    JSON.stringify([row.start_time, ...fields.map((name) => Number(row[name]) || row[name])]);
  const ours: string[] = JSON.parse(envelope).result.rows.map(key);
  const theirs = lines
    .trim()
    .split('\n')
    .map((line) => key(JSON.parse(line)));
  assert.equal(ours.length, rows);
  assert.deepEqual(ours, theirs);
}

function post(url: string, body: string, headers: Record<string, string>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    // A connection each, or one that the other side has just closed would be used again.
    const sent = request(url, { method: 'POST', headers, agent: false }, resolve);
    sent.on('error', reject);
    sent.end(body);
  });
}

async function drain(answer: IncomingMessage): Promise<void> {
  assert.equal(answer.statusCode, 200);
  for await (const _ of answer);
}
