import { brotliCompressSync, gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { connect, type Store, select } from '../../../clickhouse/client.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { loadLookupList, lookupLists } from '../../../ingest/lists/lookup-lists.ts';
import { type LoadResult, loadEvents } from '../../../ingest/load/load-events.ts';
import { useLoader } from '../../support/loader.ts';
import { useStatementsBetween } from '../../support/statements-between.ts';
import { onEveryShard, useStore } from '../../support/store.ts';

const db = useStore();
/** A list of 200,000 names does not fit in there. */
const little = useStatementsBetween(
  () => db.address.url,
  ({ settings }) => settings.set('max_memory_usage', '20000000'),
);
const { own, counted, file, run } = useLoader(db);

async function load(name: string, content: string | Buffer): Promise<LoadResult> {
  return loadEvents({
    store: db.store,
    input: new LocalFile(await file(name, content)),
    chunkBytes: 64 << 20,
    now: () => new Date(),
  });
}

const columns = ['event_id', 'event_time', 'event_type', 'advertiser_id', 'campaign_id'] as const;
const table = (separator: string, lineEnd: string) =>
  [
    columns.join(separator),
    ...Array.from({ length: 300 }, (_, n) =>
      [`ü${n}`, '2026-03-01 12:00:00', 'impression', own.account, '夏😀'].join(separator),
    ),
    '',
  ].join(lineEnd);

test('one text is counted once, however it is packed and encoded', async () => {
  const text = table(',', '\n');
  expect(await load('e.csv', text)).toMatchObject({ rows: 300 });
  const same: [string, string | Buffer][] = [
    ['bom.csv', `\ufeff${text}`],
    ['cr.csv', table(',', '\r')],
    ['utf-16.csv', Buffer.from(`\ufeff${text}`, 'utf16le')],
    ['utf-16-cr.csv', Buffer.from(`\ufeff${table(',', '\r')}`, 'utf16le').swap16()],
    ['packed.csv', gzipSync(text)],
    ['packed.csv.gz', gzipSync(Buffer.from(`\ufeff${text}`, 'utf16le'))],
    ['plain.csv.gz', text],
    ['packed.csv.br', brotliCompressSync(table(',', '\r'))],
  ];
  for (const [name, content] of same) {
    expect(await load(name, content), name).toMatchObject({ rows: 0, repeatedRows: 300, rejectedRows: 0 });
  }
  expect(await counted()).toBe(300);
});

test('names load from "CSV (Macintosh)" and from UTF-16', async () => {
  const names = (suffix: string) =>
    `account_id,campaign_id,name\r${own.account},c1,Ü${suffix}\r${own.account},c2,夏\r`;
  for (const [n, content] of [names(''), Buffer.from(`\ufeff${names('2')}`, 'utf16le')].entries()) {
    expect(
      await loadLookupList(
        db.store,
        lookupLists.campaigns,
        new LocalFile(await file(`names-${n}.csv`, content)),
      ),
    ).toBe(2);
  }
});

test('names load by --encoding, whose name is checked', async () => {
  const names = Buffer.from(`account_id,campaign_id,name\n${own.account},w1,Frühling\n`, 'latin1');
  const path = await file('names.csv', names);
  const refused = await run(['ingest', 'campaigns', path]);
  expect(refused.stderr).toMatch(
    /names\.csv: the text is not UTF-8: save it as UTF-8 \(--encoding, or .* names what it is/,
  );
  expect(await run(['ingest', 'campaigns', '--encoding', 'latin1', path])).toMatchObject({ code: 0 });
  const query = "SELECT name FROM campaigns WHERE campaign_id = 'w1' AND account_id = {account:String}";
  expect(await select(db.store, query, { account: own.account })).toEqual([{ name: 'Frühling' }]);
  const wrong = await run(['ingest', 'confirmations', '--encoding', 'latin0', path]);
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toMatch(
    /latin0 is no encoding; give one that browsers know, such as utf-8, .*windows-1252/,
  );
});

test('names load by --delimiter, which is checked', async () => {
  const listOf = (between: string, id: string, name: string) =>
    [
      ['account_id', 'campaign_id', 'name'],
      [own.account, id, name],
    ]
      .map((cells) => `${cells.join(between)}\n`)
      .join('');
  const semicolons = await file('semicolons.csv', listOf(';', 'd1', '"One; two, ""3"""'));
  expect((await run(['ingest', 'campaigns', semicolons])).stderr).toMatch(
    /the columns are account_id, campaign_id, name; --delimiter says/,
  );
  for (const [delimiter, path] of [
    [';', semicolons],
    ['tab', await file('tabs.csv', listOf('\t', 'd2', 'Two words'))],
    [' ', await file('blanks.csv', listOf(' ', 'd3', '"Three words"'))],
  ] as const)
    expect(await run(['ingest', 'campaigns', '--delimiter', delimiter, path])).toMatchObject({ code: 0 });
  const query =
    "SELECT name FROM campaigns WHERE campaign_id LIKE 'd_' AND account_id = {account:String} ORDER BY campaign_id";
  expect(await select(db.store, query, { account: own.account })).toEqual([
    { name: 'One; two, "3"' },
    { name: 'Two words' },
    { name: 'Three words' },
  ]);
  expect(await run(['ingest', 'campaigns', '--delimiter', 'x', semicolons])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('"x" cannot separate cells'),
  });
  const json = await file('names.ndjson', '{"account_id":"a","campaign_id":"b","name":"c"}\n');
  expect(await run(['ingest', 'campaigns', '--delimiter', ';', json])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('names.ndjson: only CSV and TSV have a --delimiter'),
  });
});

test.each([
  ['campaigns', 'a,c1,x\n\n,c2,x', 'record 2: account_id must be text of 1 to 128 characters, not ""'],
  ['sites', 'a,s,', 'record 1: name must be text of 1 to 1024 characters, not ""'],
  [
    'confirmations',
    'a,2026-01-01\na,2026-02-30',
    'record 2: day must be a date as yyyy-mm-dd that exists, from 1971-01-01 to 2149-06-06, not "2026-02-30"',
  ],
  ['confirmations', 'a,1970-12-31\nb,2026-01-01', 'record 1: day must be .*, not "1970-12-31"'],
  ['confirmations', `a,"it's a ""\\ day"`, String.raw`record 1: day must be .*, not "it's a \\"\\\\ day"$`],
  ['confirmations', 'a', 'record 1 has fewer cells than there are columns; the columns are account_id, day$'],
  [
    'confirmations',
    'a,2026-01-01\na,b,c',
    'record 2 has more cells than there are columns; the columns are ',
  ],
] as const)('a faulty list of %s is refused as a whole, and told why: %j', async (name, lines, reason) => {
  const list = lookupLists[name];
  const count = () => select(db.store, `SELECT count() AS rows FROM ${list.table}`);
  const before = await count();
  const path = await file(`${name}.csv`, `${list.columns.join()}\n${lines}\n`);
  await expect(loadLookupList(db.store, list, new LocalFile(path))).rejects.toThrow(
    new RegExp(`/${name}\\.csv: nothing was loaded: ${reason}`),
  );
  expect(await count()).toEqual(before);
});

test.each([
  ['account_id,campaing_id,name\na,b,c\n', '"campaing_id" is no column of this list; missing: campaign_id'],
  ['account_id,campaign_id,name,\na,b,c,\n', 'a column has no name'],
  ['account_id,"campaign_id"\na,b\n', 'missing: name'],
  ['account_id,campaign_id,name,name\na,b,c,d\n', 'there are two columns name'],
  ['a,b,c\n', '"a" is no column of this list; missing: account_id, campaign_id, name'],
  [
    '{"account_id":"a","campaign_id":\n',
    'record 1 cannot be read (Cannot parse JSON string: expected opening quote: (while reading the value of key campaign_id))',
  ],
  ['{"account_id":"a","campaign_id":"b","nam":"c"}\n', '"nam" is no column of this list'],
])('a list whose columns do not fit is refused with what is wrong: %j', async (content, reason) => {
  const path = await file(`fit.${content.startsWith('{') ? 'ndjson' : 'csv'}`, content);
  const columns = 'account_id, campaign_id, name';
  await expect(loadLookupList(db.store, lookupLists.campaigns, new LocalFile(path))).rejects.toThrow(
    `${path}: nothing was loaded: ${reason}; the columns are ${columns}`,
  );
});

test('where a table has too many parts, or a list finds no memory, no list is called faulty', async () => {
  const { campaigns } = lookupLists;
  const names = Array.from({ length: 200_000 }, (_, n) => `${own.account},c${n},Name`);
  const list = await file('long.csv', `account_id,campaign_id,name\n${names.join('\n')}\n`);
  const load = (store: Store) => loadLookupList(store, campaigns, new LocalFile(list));
  const narrow = connect({ ...db.address, url: little.url });
  await expect(load(narrow).finally(() => narrow.close())).rejects.toMatchObject({
    type: 'MEMORY_LIMIT_EXCEEDED',
  });
  await load(db.store);
  await onEveryShard(db, 'ALTER TABLE campaigns MODIFY SETTING parts_to_throw_insert = 1');
  await expect(load(db.store)).rejects.toMatchObject({ type: 'TOO_MANY_PARTS' });
  await onEveryShard(db, 'ALTER TABLE campaigns RESET SETTING parts_to_throw_insert');
});

test('a quote that is never closed refuses a list, and does not make one name of what follows', async () => {
  const { campaigns } = lookupLists;
  const head = 'account_id,campaign_id,name\n';
  for (const [content, line] of [
    [`${head}q,c1,One\nq,c2,"Two\nq,c3,Three\n`, 3],
    [`${head}q,c1,"One ""1"" \nof two lines"\nq,c2,"Two ""\n`, 4],
  ] as const) {
    const path = await file('quote.csv', content);
    await expect(loadLookupList(db.store, campaigns, new LocalFile(path))).rejects.toThrow(
      `${path}: nothing was loaded: the quote that opens in line ${line} is never closed`,
    );
  }
  expect(await select(db.store, "SELECT name FROM campaigns WHERE account_id = 'q'")).toEqual([]);
});

test('an empty line in a list of names is no record', async () => {
  const { creatives } = lookupLists;
  const named = async (name: string, content: string) => {
    const lines = await loadLookupList(db.store, creatives, new LocalFile(await file(name, content)));
    const headlines = 'SELECT creative_id AS id, headline FROM creatives FINAL ORDER BY id';
    return [
      lines,
      ...(await select<{ id: string; headline: string }>(db.store, headlines)).map((row) => row.headline),
    ];
  };
  const head = 'account_id,creative_id,headline';
  const one = `\n\n${head}\n\n${own.account},c1,One\n\n\n${own.account},c2,"A ""quoted""\n\nheadline"\n\n`;
  expect(await named('a.csv', one)).toEqual([2, 'One', 'A "quoted"\n\nheadline']);
  const two = `${head}\r\n\r\n${own.account},c1,5" wide\r\n\r\n${own.account},c2,"Two"\r\n\r\n`;
  expect(await named('b.csv', two)).toEqual([2, '5" wide', 'Two']);
  const three = `${head.replaceAll(',', '\t')}\n\n${own.account}\tc1\t5" wide\n\n${own.account}\tc2\t"Two\t\n\n2"\n\n`;
  expect(await named('c.tsv', three)).toEqual([2, '5" wide', 'Two\t\n\n2']);
  const lines = ['c1', 'c2'].map((creative_id) =>
    JSON.stringify({ account_id: own.account, creative_id, headline: creative_id }),
  );
  expect(await named('d.ndjson', `\n${lines.join('\n\n')}\n\n`)).toEqual([2, 'c1', 'c2']);
});

test.each([
  ['empty.csv', ''],
  ['header.csv', 'account_id,campaign_id,name\n'],
  ['lines.tsv', '\r\n\n'],
  ['empty.ndjson', ''],
])('a list without records changes nothing and is no failure: %s', async (name, content) => {
  const count = () => select(db.store, 'SELECT count() AS rows FROM campaigns');
  const before = await count();
  const path = await file(name, content);
  expect(await loadLookupList(db.store, lookupLists.campaigns, new LocalFile(path))).toBe(0);
  expect(await count()).toEqual(before);
});

test('files without events are no failure', async () => {
  for (const [name, content] of [
    ['empty.csv', ''],
    ['header.csv', columns.join(',')],
    ['header-cr.csv', `${columns.join(',')}\r`],
    ['bom.ndjson', '\ufeff'],
    ['packed.ndjson.gz', gzipSync('')],
    ...['e.ndjson.gz', 'e.csv.zst', 'e.csv.br'].map((name) => [name, ''] as const),
  ] as const) {
    expect(await load(name, content), name).toMatchObject({ rows: 0, rejectedRows: 0 });
  }
});
