import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { connect, select } from '../../../clickhouse/client.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { loadEvents } from '../../../ingest/load/load-events.ts';
import { event, ndjson } from '../../support/events.ts';
import { useFolder } from '../../support/folder.ts';
import { eventsFile } from '../../support/load-under-way.ts';
import { environmentOf, useCommands } from '../../support/process.ts';
import { type Page, useStatementsBetween } from '../../support/statements-between.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const commands = useCommands();
const folder = useFolder();

/** The statements of a load that are left to be answered by the load balancer, once each. */
let unanswered: RegExp[] = [];
let page: Page;
const way = useStatementsBetween(
  () => db.address.url,
  ({ query }) => {
    const met = unanswered.find((statement) => statement.test(query));
    unanswered = unanswered.filter((statement) => statement !== met);
    return met && page;
  },
);

test.each([
  [502, '<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>nginx</body>\r\n</html>'],
  [503, '<html><head><title>503 Service Temporarily Unavailable</title></head></html>'],
  [503, '<html><body><h1>503 Service Unavailable</h1>\nNo server is available.\n</body></html>'],
  [503, 'no healthy upstream'],
  [504, '<html>\r\n<head><title>504 Gateway Time-out</title></head></html>'],
  [504, 'upstream request timeout'],
])('a load rides out a load balancer without a ClickHouse behind it: %i %j', async (status, text) => {
  page = { status, text };
  unanswered = [/INTO load_chunks/, /INSERT INTO incoming /, /FROM rejected_rows/];
  const account = `balanced-${text}`;
  const file = join(folder, 'events.ndjson');
  writeFileSync(file, ndjson(Array.from({ length: 10 }, () => event({ advertiser_id: account }))));
  const store = connect({ ...db.address, url: way.url });
  const onRetry = vi.fn();
  const load = loadEvents({
    store,
    input: new LocalFile(file),
    chunkBytes: 1 << 20,
    now: () => new Date(),
    onRetry,
  });
  expect(await load).toMatchObject({ rows: 10 });
  expect([unanswered, onRetry.mock.calls.length]).toEqual([[], 3]);
  await store.close();
  const query = 'SELECT toUInt32(count()) AS events FROM events WHERE advertiser_id = {account:String}';
  expect(await select(db.store, query, { account })).toEqual([{ events: 10 }]);
});

test.each([
  [502, 'Bad Gateway', 0, '', 'ClickHouse does not respond: Bad Gateway; retrying'],
  [403, 'Forbidden', 1, 'Forbidden', '.ndjson: something in front of ClickHouse answered: Forbidden. Rows '],
  [401, ' ', 1, 'a page', '.ndjson: something in front of ClickHouse answered: a page. Rows already loaded'],
])('the page of a load balancer is told by its title: %i %s', async (status, title, ended, error, said) => {
  page = { status, text: `<html>\r\n<head><title>${title}</title></head></html>` };
  unanswered = [/INSERT INTO incoming /];
  const file = eventsFile(folder, `paged-${status}`, 1);
  const env = environmentOf({ ...db.address, url: way.url });
  const { code, stderr } = await commands.run(['ingest', 'events', file], env);
  expect([unanswered, code]).toEqual([[], ended]);
  expect(stderr).toContain(said);
  expect(stderr).not.toContain('<html>');
  const failures = 'SELECT error FROM loads FINAL WHERE file = {file:String}';
  expect(await select(db.store, failures, { file })).toEqual([{ error }]);
});

test('an answer without a text is told as that', async () => {
  page = { status: 500, text: '' };
  unanswered = [/FROM loads/];
  const { code, stderr } = await commands.run(['loads'], environmentOf({ ...db.address, url: way.url }));
  expect([code, stderr]).toEqual([
    1,
    'error: ClickHouse, or what stands between, answered with an error and no text\n',
  ]);
});

test('a list of chunks is never too long for its address', async () => {
  const store = connect({ ...db.address, url: way.url });
  const chunks = Array.from({ length: 1_000 }, (_, n) => `${n}`.padStart(64, "'"));
  const listed = 'chunk IN {chunks:Array(String)}';
  const found = () =>
    select(store, `SELECT toUInt32(count()) AS found FROM listed WHERE ${listed}`, { chunks });
  await store.command({ query: 'CREATE TABLE listed (chunk String) ENGINE = MergeTree ORDER BY chunk' });
  const query = 'INSERT INTO listed SELECT arrayJoin({chunks:Array(String)})';
  await store.command({ query, query_params: { chunks } });
  expect(await found()).toEqual([{ found: 1_000 }]);
  const remove = `ALTER TABLE listed DELETE WHERE ${listed} SETTINGS mutations_sync = 2`;
  await store.command({ query: remove, query_params: { chunks } });
  expect(await found()).toEqual([{ found: 0 }]);
  await store.command({ query: 'DROP TABLE listed' });
  await store.close();
});
