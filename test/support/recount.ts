import { catalog } from '../../catalog/catalog.ts';
import { type Store, select } from '../../clickhouse/client.ts';
import { rollups } from '../../clickhouse/rollups.ts';

/** What an event adds and where, as it is stored; counts, and amounts in millionths. */
export interface Counted {
  readonly event_id: string;
  /** UTC, `yyyy-mm-dd hh:mm:ss.mmm`. */
  readonly event_time: string;
  readonly advertiser_id: string;
  readonly campaign_id: string;
  readonly creative_id: string;
  readonly publisher_id: string;
  readonly ad_unit_id: string;
  readonly site_id: string;
  readonly device: string;
  readonly ad_requests: bigint;
  readonly impressions: bigint;
  readonly referrals: bigint;
  readonly conversions: bigint;
  readonly spend: bigint;
  readonly revenue: bigint;
  readonly confirmed: boolean;
  readonly reason: string;
}

const columns = [
  ...['event_id', 'event_time', 'advertiser_id', 'campaign_id', 'creative_id', 'publisher_id', 'ad_unit_id'],
  ...['site_id', 'device', 'ad_requests', 'impressions', 'referrals', 'conversions', 'spend', 'revenue'],
  'confirmed',
  'reason',
] as const;
const amounts = ['spend', 'revenue', 'spent', 'estimated_revenue'];

/** Which column of an event a sum of a rollup is of. */
const sumOf: Readonly<Record<string, keyof Counted>> = { spent: 'spend', estimated_revenue: 'revenue' };

/**
 * The first differences between what the store has of all accounts that begin with a text, in `events` and in each of
 * the rollups key by key, and an event by event recount; days are in UTC.
 * @param rawSince the first day whose events are compared one by one; those before may be pruned
 */
export async function differences(
  store: Store,
  prefix: string,
  events: readonly Counted[],
  rawSince = '1970-01-01',
): Promise<string[]> {
  const raw = events.filter(({ event_time }) => event_time >= rawSince);
  const found = compare('events', await storedEvents(store, prefix, rawSince), raw.map(textOf).sort());
  for (const { table, sortingKey, columns: all } of rollups(catalog)) {
    const measures = all
      .filter(({ type }) => type.startsWith('SimpleAggregateFunction(sum'))
      .map(({ name }) => name);
    const query = `SELECT toJSONString([${[
      ...sortingKey.map((name) => `toString(r.${name})`),
      ...measures.map((name) => exact(name, `sum(r.${name})`)),
    ].join(', ')}]) AS row FROM ${table} AS r WHERE startsWith(r.account_id, {prefix:String})
      GROUP BY ${sortingKey.map((name) => `r.${name}`).join(', ')}`;
    const rows = await select<{ row: string }>(store, query, { prefix }, jsonAsWritten);
    found.push(
      ...compare(
        table,
        rows.map(({ row }) => row).sort(),
        recount(
          table.startsWith('campaigns') ? 'advertiser_id' : 'publisher_id',
          sortingKey,
          measures,
          events,
        ),
      ),
    );
  }
  return found;
}

async function storedEvents(store: Store, prefix: string, rawSince: string): Promise<string[]> {
  const query = `SELECT toJSONString([${columns.map((name) => (amounts.includes(name) ? exact(name, `e.${name}`) : `toString(e.${name})`)).join(', ')}]) AS row
    FROM events AS e WHERE day >= {rawSince:Date} AND (startsWith(e.advertiser_id, {prefix:String}) OR startsWith(e.publisher_id, {prefix:String}))`;
  const rows = await select<{ row: string }>(store, query, { prefix, rawSince }, jsonAsWritten);
  return rows.map(({ row }) => row).sort();
}

/** As JSON.stringify writes it. */
const jsonAsWritten = { output_format_json_escape_forward_slashes: 0 } as const;

/** Amounts as whole millionths. */
function exact(name: string, value: string): string {
  return amounts.includes(name) ? `toString(toInt128(${value} * 1000000))` : `toString(${value})`;
}

function textOf(event: Counted): string {
  return JSON.stringify(columns.map((name) => String(event[name])));
}

function recount(
  owner: 'advertiser_id' | 'publisher_id',
  keys: readonly string[],
  measures: readonly string[],
  events: readonly Counted[],
): string[] {
  const groups = new Map<string, bigint[]>();
  for (const event of events.filter((each) => each[owner] !== '')) {
    const key = JSON.stringify(
      keys.map((name) => {
        if (name === 'account_id') return event[owner];
        return name === 'day' ? event.event_time.slice(0, 10) : event[name as keyof Counted];
      }),
    );
    const sums = groups.get(key) ?? measures.map(() => 0n);
    const added = measures.map(
      (name, n) => (sums[n] ?? 0n) + BigInt(event[sumOf[name] ?? (name as keyof Counted)]),
    );
    groups.set(key, added);
  }
  return [...groups].map(([key, sums]) => JSON.stringify([...JSON.parse(key), ...sums.map(String)])).sort();
}

function compare(what: string, found: readonly string[], expected: readonly string[]): string[] {
  const times = new Map<string, number>();
  for (const row of expected) times.set(row, (times.get(row) ?? 0) + 1);
  for (const row of found) times.set(row, (times.get(row) ?? 0) - 1);
  return [...times]
    .filter(([, count]) => count !== 0)
    .slice(0, 4)
    .map(([row, count]) => `${what}: ${count > 0 ? 'missing' : 'too many'} ${row}`);
}
