import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { againstProfiles, connect, select } from '../../clickhouse/client.ts';
import { Reader } from '../../clickhouse/reader.ts';
import { reportFormats } from '../../src/report/formats.ts';
import { useCluster } from '../support/cluster.ts';
import { addressOf } from '../support/store.ts';

const many = 'SELECT number FROM numbers(200000)';
const refused = /TOO_MANY_ROWS|SET_SIZE_LIMIT|TOO_SLOW|TIMEOUT|limit for|Limit for/i;

/** Has a row where a setting is what statements make of it. */
const isSet = (name: keyof typeof againstProfiles) =>
  `SELECT 1 FROM system.settings WHERE name = '${name}' AND value = '${againstProfiles[name]}'`;

/** What a profile says, a statement that it would change, and how many rows that has; absent: it is refused. */
const cases: readonly (readonly [profile: Record<string, string>, query: string, rows?: number])[] = [
  [{ limit: '5' }, many, 200_000],
  [{ offset: '5' }, many, 200_000],
  [{ max_result_rows: '10', result_overflow_mode: 'break' }, many],
  [{ max_result_bytes: '10', result_overflow_mode: 'break' }, many],
  [{ max_rows_to_read: '10', read_overflow_mode: 'break' }, many],
  [{ max_rows_to_read_leaf: '10', read_overflow_mode_leaf: 'break' }, many],
  [
    { max_rows_to_group_by: '10', group_by_overflow_mode: 'any' },
    `SELECT DISTINCT number FROM (${many} GROUP BY number)`,
  ],
  [{ max_rows_to_sort: '10', sort_overflow_mode: 'break' }, `${many} ORDER BY number % 7`],
  [{ max_rows_in_distinct: '10', distinct_overflow_mode: 'break' }, `SELECT DISTINCT number FROM (${many})`],
  [{ max_rows_in_set: '10', set_overflow_mode: 'break' }, `${many} WHERE number IN (${many})`],
  [
    { max_rows_in_join: '10', join_overflow_mode: 'break' },
    `SELECT a.number FROM (${many}) AS a JOIN (${many}) AS b USING number`,
  ],
  [
    { max_execution_time: '0.01', timeout_overflow_mode: 'break' },
    'SELECT count(), sleepEachRow(0.001) AS slept FROM numbers(1000) GROUP BY slept',
  ],
  [
    { aggregate_functions_null_for_empty: '1' },
    'SELECT 1 FROM (SELECT sum(number) AS s FROM numbers(0)) WHERE s = 0',
    1,
  ],
  [{ enable_analyzer: '0' }, 'EXPLAIN QUERY TREE SELECT 1', 8],
  [{ empty_result_for_aggregation_by_empty_set: '1' }, 'SELECT count() FROM numbers(0)', 1],
  [
    { join_use_nulls: '1' },
    "SELECT 1 FROM (SELECT 1 AS a) AS k LEFT JOIN (SELECT 2 AS a, 'x' AS b) AS l USING a WHERE l.b = ''",
    1,
  ],
  [
    { join_default_strictness: 'ANY' },
    'SELECT 1 FROM numbers(2) AS a LEFT JOIN (SELECT arrayJoin([0, 0]) AS number) AS b USING number',
    3,
  ],
  [{ prefer_column_name_to_alias: '1' }, 'SELECT sum(number) AS number FROM numbers(3) HAVING number > 2', 1],
  [{ timeout_overflow_mode_leaf: 'break' }, isSet('timeout_overflow_mode_leaf'), 1],
  [{ transfer_overflow_mode: 'break' }, isSet('transfer_overflow_mode'), 1],
  [{ use_query_cache: '1' }, isSet('use_query_cache'), 1],
  [{ enable_parallel_replicas: '1' }, isSet('enable_parallel_replicas'), 1],
  [{ async_insert: '1' }, isSet('async_insert'), 1],
];

const tags = (settings: Record<string, string>) =>
  Object.entries(settings)
    .map(([name, value]) => `<${name}>${value}</${name}>`)
    .join('');
const users = [
  ...cases.map(([profile]) => profile),
  {
    ...{ extremes: '1', format_csv_delimiter: ';' },
    ...{ output_format_csv_crlf_end_of_line: '1', output_format_tsv_crlf_end_of_line: '1' },
  },
  { compatibility: '23.8', readonly: '2' },
];
const server = useCluster(1, {
  more: `<profiles>${users.map((profile, n) => `<of${n}>${tags(profile)}</of${n}>`).join('')}</profiles>
    <users>${users.map((_, n) => `<user${n}><password>x</password><networks><ip>::/0</ip></networks><profile>of${n}</profile><quota>default</quota></user${n}>`).join('')}</users>
    <http_handlers replace="replace"><defaults/></http_handlers>`,
});

function addressAs(n: number) {
  const [node] = server.nodes;
  if (!node) throw new Error('there is one node');
  return { ...addressOf(node, 'default'), user: `user${n}`, password: 'x' };
}

test.each(cases.map((each, n) => [each[0], n, ...each.slice(1)] as const))(
  'no answer is cut off by a profile with %j',
  async (_, n, query, rows) => {
    const store = connect(addressAs(n));
    const reader = new Reader(addressAs(n), 60_000);
    const asked = [
      () => select(store, String(query)),
      () => reader.rows({ query: String(query), params: {}, settings: {} }),
    ];
    try {
      for (const ask of asked) {
        if (rows === undefined) await expect(ask()).rejects.toThrow(refused);
        else expect(await ask()).toHaveLength(Number(rows));
      }
    } finally {
      reader.close();
      await store.close();
    }
  },
);

test('each of these settings is in one of the profiles', () => {
  const tried = new Set(users.flatMap((profile) => Object.keys(profile)));
  expect(Object.keys(againstProfiles).filter((name) => !tried.has(name))).toEqual([]);
});

test('what a compatibility stands for is taken back, and nothing that a statement sets', async () => {
  // Three of these were otherwise then: the first is of no statement, the others are set to what they were.
  const query = `SELECT name, value FROM system.settings WHERE name IN
    ('deduplicate_blocks_in_dependent_materialized_views', 'async_insert', 'parallel_distributed_insert_select') ORDER BY name`;
  const then = [
    { name: 'async_insert', value: '0' },
    { name: 'deduplicate_blocks_in_dependent_materialized_views', value: '1' },
    { name: 'parallel_distributed_insert_select', value: '0' },
  ];
  const store = connect(addressAs(users.length - 1));
  const reader = new Reader(addressAs(users.length - 1), 60_000);
  try {
    expect(await select(store, query)).toEqual(then);
    const settings = { parallel_distributed_insert_select: '0' };
    expect(await reader.rows({ query, params: {}, settings })).toEqual(then);
  } finally {
    reader.close();
    await store.close();
  }
});

test('an answer has the same bytes whatever a profile says of them', async () => {
  const reader = new Reader(addressAs(cases.length), 60_000);
  const { clickhouse, settings } = reportFormats.csv;
  const read = async (query: string) =>
    (await buffer(await reader.stream({ query, params: {}, settings }))).toString();
  try {
    expect(await read(`SELECT number AS a, number AS b FROM numbers(2) FORMAT ${clickhouse}`)).toBe(
      '"a","b"\n0,0\n1,1\n',
    );
    // A close is named by such lines.
    expect(await read('SELECT number FROM numbers(2) FORMAT TSVRaw')).toBe('0\n1\n');
  } finally {
    reader.close();
  }
});
