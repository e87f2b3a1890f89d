import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { examples, reportByDay } from '../../support/examples.ts';
import { useMappedLoads } from '../../support/mapped-loads.ts';
import { useService } from '../../support/service.ts';

const { db, load } = useMappedLoads();
const service = useService(db);

test.each(Object.entries(examples))('%s loads and gives the report of its rows', async (name, example) => {
  const { data, side, account = name, leftOut } = example;
  const flags = { mapping: `examples/${name}.json`, set: [`${side}=${account}`] };
  expect(await load(flags, `examples/${data}`, '1')).toMatchObject({ leftOut, rejected: [] });
  expect(await reportByDay(service, example, account)).toEqual(example.rows);
});

test('a row with several counts for both sides is in the reports of both', async () => {
  const flags = { mapping: 'examples/placements.json', set: ['publisher_id=both-sides'] };
  await load(flags, 'examples/placements.csv', '1');
  const report = await service.report('/v1/ad_units', 'both-sides', '2026-09-01', '2026-09-02');
  expect(
    report.rows.map(({ ad_unit, impressions, estimated_revenue }) => [
      ad_unit,
      impressions,
      estimated_revenue,
    ]),
  ).toEqual([
    ['160x600', 34871, 40.56416],
    ['300x250', 9875, 8.75],
    ['728x90', 8020, -0.8125],
  ]);
});

test('examples/README.md names each file, and each has a test', () => {
  const mappingOf = (file: string) => file.replace(/(\.data)?\.[a-z]+$/, '');
  const files = readdirSync('examples').filter((file) => file !== 'README.md');
  const readme = readFileSync('examples/README.md', 'utf8');
  expect(files.filter((file) => !readme.includes(`\`${file}\``))).toEqual([]);
  expect([...new Set(files.map(mappingOf))].sort()).toEqual(Object.keys(examples).sort());
  expect(Object.values(examples).map(({ data }) => data)).toEqual(
    expect.arrayContaining(files.filter((file) => !file.endsWith('.json') || file.endsWith('.data.json'))),
  );
});
