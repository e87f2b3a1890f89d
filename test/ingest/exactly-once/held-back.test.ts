import { expect, test } from 'vitest';
import { closing, connect, select } from '../../../clickhouse/client.ts';
import { dropStaged } from '../../../ingest/delivery/staging.ts';
import { ndjson } from '../../support/events.ts';
import { useLoader } from '../../support/loader.ts';
import { outputOf } from '../../support/process.ts';
import { reachedBy, useStatementsBetween } from '../../support/statements-between.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
let hold: Parameters<typeof useStatementsBetween>[1] = () => {};
const between = useStatementsBetween(
  () => db.address.url,
  (passing) => hold(passing),
);
const { own, counted, events, file, run } = useLoader(reachedBy(between, db));

test.each(['--max-rejects', '--dedupe'])('%s only counts what its own load holds back', async (option) => {
  const path = await file('e.ndjson', ndjson([...events(9), ...events(1, { device: 'd'.repeat(99) })]));
  let asked = 0;
  hold = async ({ query }) => {
    if (!query.includes('countIf(left_out)') || asked++ > 0) return;
    // As the statement of a loader that was killed, and had begun with the same chunk, may do at this moment.
    const add =
      "INSERT INTO incoming_staging SELECT * REPLACE ('killed' AS load_id, concat(chunk, ' killed') AS batch) FROM incoming_staging";
    await db.store.command({ query: add });
  };
  const args = ['ingest', 'events', '--json', option, ...(option === '--max-rejects' ? ['1'] : []), path];
  const { code, stdout, stderr } = await run(args);
  expect(code, stderr).toBe(4);
  expect(asked).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({ rows: 9, rejected_rows: 1, duplicate_rows: 0 });
  expect(await counted()).toBe(9);
});

test.each([
  ['--where', "{device} != 'tv'"],
  ['--max-rejects', '1'],
  ['--dedupe', ''],
  ['--dry-run', ''],
])('%s counts once what an attempt held back whose answer was lost', async (option, value) => {
  const others = [...events(1, { device: 'd'.repeat(99) }), ...events(1, { device: 'tv' })];
  const path = await file('e.ndjson', ndjson([...events(9), ...others]));
  let asked = 0;
  hold = async ({ query }) => {
    if (!query.includes('countIf(left_out)') || asked++ > 0) return;
    // It went on in ClickHouse, beside the one that came in its place.
    await db.store.command({ query: 'INSERT INTO incoming_staging SELECT * FROM incoming_staging' });
  };
  const { code, stdout, stderr } = await run([
    ...['ingest', 'events', '--json', option],
    ...(value === '' ? [] : [value]),
    path,
  ]);
  expect(code, stderr).toBe(4);
  // Once more, as there are more than were cut.
  expect(asked).toBe(2);
  const leftOut = option === '--where' ? 1 : 0;
  expect(JSON.parse(stdout)).toMatchObject({
    rows: 10 - leftOut,
    rejected_rows: 1,
    duplicate_rows: 0,
    left_out_rows: leftOut,
  });
  expect(stderr.match(/line 10: /g)).toHaveLength(1);
  expect(await counted()).toBe(option === '--dry-run' ? 0 : 10 - leftOut);
});

test('dry runs of the same file at the same time tell what each has judged', async () => {
  const path = await file('e.ndjson', ndjson(events(1)));
  const dryRun = () => run(['ingest', 'events', '--json', '--dry-run', path]);
  const others: ReturnType<typeof dryRun>[] = [];
  let asked = 0;
  hold = async ({ query }) => {
    if (!query.includes('countIf(left_out)') || asked++ > 0) return;
    others.push(dryRun());
    await others[0];
  };
  const ended = [await dryRun(), ...(await Promise.all(others))];
  expect(ended.map(({ stdout }) => JSON.parse(stdout).rows)).toEqual([1, 1]);
});

test('a load balancer that bounds addresses lets pass what is said of many chunks at once', async () => {
  hold = () => {};
  const files = Array.from({ length: 256 }, (_, n) =>
    file(`${n}.ndjson`, ndjson(events(1, { campaign_id: `${n}` }))),
  );
  await outputOf(run(['ingest', 'events', ...(await Promise.all(files))]));
  expect(await counted()).toBe(files.length);
});

test('what is held back of 10,000 chunks behind such a load balancer is let go of', async () => {
  hold = () => {};
  const many = `INSERT INTO incoming_staging (chunk, batch) SELECT 'c', concat(hex(SHA256(toString(number))), ' ', {account:String}) FROM numbers(3)`;
  await db.store.command({ query: many, query_params: { account: own.account } });
  const held = `SELECT batch FROM incoming_staging WHERE endsWith(batch, {account:String})`;
  const batches = (await select<{ batch: string }>(db.store, held, { account: own.account })).map(
    ({ batch }) => batch,
  );
  expect(batches).toHaveLength(3);
  const others = Array.from({ length: 10_000 }, (_, n) => `${n} ${'0'.repeat(60)} ${own.account}`);
  await closing(connect({ ...db.address, url: between.url }), (store) =>
    dropStaged(store, [...batches.slice(0, 1), ...others, ...batches.slice(1)]),
  );
  expect(await select(db.store, held, { account: own.account })).toEqual([]);
});
