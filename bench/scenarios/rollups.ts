import { familyOf } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { connect } from '../../clickhouse/client.ts';
import { groupingDimensions } from '../../src/report/columns.ts';
import { read, transferSide } from '../harness/http-client.ts';
import { ratio, runInTurn } from '../harness/measure.ts';
import { jsonEachRowRequest, type Report, viewRequest } from '../harness/requests.ts';
import { assertSameRows, linesOf, rowsOf } from '../harness/same-rows.ts';
import { neverAsked, type Outcome, openService, report, type Scenario } from '../harness/scenario.ts';

/** Reports from rollups, against the same rows computed by ClickHouse from the raw events. */
export const rollups: Scenario = async (bench) => {
  const { address, events } = await bench.store(bench.events);
  const store = connect(address);
  const service = await openService(bench, address);
  const outcomes: Outcome[] = [];
  try {
    for (const asked of [
      report('/v1/campaigns', 90),
      report('/v1/campaigns/breakdowns/device_creative_date', 90),
    ]) {
      bench.progress(asked.path);
      await store.command({ query: `CREATE OR REPLACE VIEW bench_raw AS ${selectRaw(asked)}` });
      const raw = viewRequest(address, asked, 'bench_raw');
      assertSameRows(rowsOf(await read(service.request(asked))), linesOf(await read(raw)), asked.path);
      const sides = await runInTurn(
        [
          transferSide('adtally, from rollups', () => service.request(neverAsked(asked))),
          transferSide('ClickHouse, from rollups', jsonEachRowRequest(address, asked)),
          transferSide(`ClickHouse, from ${events / 1e6} million raw events`, raw),
        ],
        bench.runs,
      );
      const value = ratio(sides[2]?.samples ?? [], sides[0]?.samples ?? []).median;
      const base = asked.breakdown.dimensions.length === 0;
      outcomes.push({
        what: `${asked.path}, 90 days`,
        unit: 's',
        sides,
        ...(base && { goals: [{ goal: 'rollups', value }] }),
      });
    }
    return outcomes;
  } finally {
    await store.command({ query: 'DROP VIEW IF EXISTS bench_raw' });
    await store.close();
    await service.stop();
  }
};

/**
 * Events with the columns of a rollup: one by one for a statement that groups them itself, grouped by key for one that
 * reads a rollup as it is. Either way they are grouped once.
 */
function selectRaw({ breakdown }: Report): string {
  const { owner, measures } = familyOf(catalog, breakdown.family);
  const keys = ['account_id', 'day', ...groupingDimensions(catalog, breakdown).map(({ key }) => key)];
  const columns = Object.entries(measures).map(
    ([name, { sumOf }]) => `${breakdown.day ? `sum(e.${sumOf})` : `e.${sumOf}`} AS ${name}`,
  );
  const group = breakdown.day ? ` GROUP BY ${keys.join(', ')}` : '';
  return `SELECT ${[`${owner} AS ${keys.join(', ')}`, ...columns].join(', ')} FROM events AS e WHERE ${owner} != ''${group}`;
}
