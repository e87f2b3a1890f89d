import { readdirSync, readFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import { examples, reportByDay } from '../../support/examples.ts';
import { type MappedLoad, useMappedLoads } from '../../support/mapped-loads.ts';
import { useService } from '../../support/service.ts';

/** Exports of platforms, read by their examples, give the reports that their records add up to. */
const { db, load, warned } = useMappedLoads();
const service = useService(db);

const loads = new Map<string, Promise<MappedLoad>>();
beforeAll(async () => {
  for (const [name, { data, side, account = name }] of Object.entries(examples)) {
    const flags = { mapping: `examples/${name}.json`, set: [`${side}=${account}`] };
    loads.set(name, load(flags, `examples/${data}`, '1'));
  }
  // Those that fail fail their own tests.
  await Promise.allSettled(loads.values());
}, 120_000);

test.each(Object.entries(examples))('%s', async (name, example) => {
  expect(await loads.get(name)).toMatchObject({ leftOut: example.leftOut, rejected: [] });
  expect(warned.filter((text) => text.includes(example.data))).toEqual([]);
  expect(await reportByDay(service, example, example.account ?? name)).toEqual(example.rows);
});

test('a row with several counts for both sides is in the reports of both', async () => {
  const flags = { mapping: 'examples/placements.json', set: ['publisher_id=both-sides'] };
  await load(flags, 'examples/placements.csv', '1');
  const report = await service.report('/v1/ad_units', 'both-sides', '2026-09-01', '2026-09-02');
  const figures = report.rows.map((row) => [row.ad_unit, row.impressions, row.estimated_revenue]);
  expect(figures).toEqual([
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
  const ofMappings = files.filter((file) => !file.endsWith('.py'));
  expect([...new Set(ofMappings.map(mappingOf))].sort()).toEqual(Object.keys(examples).sort());
  expect(Object.values(examples).map(({ data }) => data)).toEqual(
    expect.arrayContaining(
      ofMappings.filter((file) => !file.endsWith('.json') || file.endsWith('.data.json')),
    ),
  );
});
