import assert from 'node:assert/strict';
import { read, transfer } from '../harness/http-client.ts';
import { runInTurn, type Side } from '../harness/measure.ts';
import { rowsOf } from '../harness/same-rows.ts';
import { largest, neverAsked, type Outcome, openService, type Scenario } from '../harness/scenario.ts';

type Options = NonNullable<(typeof largest)['options']>;

/** The largest report, asked for with optional fields: what is chosen, added up or left out, against all of it. */
export const options: Scenario = async (bench) => {
  const { address } = await bench.store(bench.events);
  const service = await openService(bench, address);
  const asked = (chosen: Options = {}) => service.request({ ...largest, options: chosen });
  try {
    const all = rowsOf(await read(asked()));
    const { campaign = '', device = '' } = all[0] ?? {};
    const by = (field: string) => ({ order_by: [{ field, direction: 'desc' }] });
    const cases: readonly (readonly [name: string, chosen: Options, check?: (rows: typeof all) => void])[] = [
      ['every row', {}],
      ['every row and totals', { totals: true }],
      [
        'top 10 by spent',
        { limit: 10, ...by('spent') },
        (rows) => {
          const spent = all.map((row) => Number(row.spent)).sort((a, b) => b - a);
          assert.deepEqual(
            rows.map((row) => Number(row.spent)),
            spent.slice(0, 10),
          );
        },
      ],
      [
        'one device',
        { filters: { device: [`${device}`] } },
        (rows) => assert.equal(rows.length, all.filter((row) => row.device === device).length),
      ],
      [
        'one campaign by name',
        { filters: { campaign: [`${campaign}`] } },
        (rows) => assert.equal(rows.length, all.filter((row) => row.campaign === campaign).length),
      ],
      ['months', { time_grain: 'month' }],
    ];
    const sides: Side[] = [];
    const facts: Record<string, number> = { rows: all.length };
    for (const [name, chosen, check] of cases) {
      bench.progress(name);
      check?.(rowsOf(await read(asked(chosen))));
      sides.push({
        name,
        run: async () => {
          const done = await transfer(service.request({ ...neverAsked(largest), options: chosen }));
          facts[`bytes of ${name}`] = done.bytes;
          return done.seconds;
        },
      });
    }
    const what = 'largest report with optional fields, identity, first';
    const outcome: Outcome = { what, unit: 's', sides: await runInTurn(sides, bench.runs), facts };
    return [outcome];
  } finally {
    await service.stop();
  }
};
