import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { tableFromIPC } from 'apache-arrow';
import { beforeAll, describe, expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { begins, breaksOff, ends, useBrokenServer } from '../support/broken-server.ts';
import { close } from '../support/closes.ts';
import { event, load } from '../support/events.ts';
import { checkout } from '../support/process.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const service = useService(db);
const server = useBrokenServer();
const march = "'2026-03-01', '2026-03-31'";
const row = '{"campaign":"a","spent":1.50}\n';

beforeAll(() =>
  load(db.store, [
    event({ device: 'mobile', spend: '1.25' }),
    event({ device: 'tv', campaign_id: 'größer', spend: '123456789.000001' }),
  ]),
);

const run = promisify(execFile);

/** Runs lines of Python with a `client`, and what they print as JSON with `show`. */
async function python(url: string, token: string, ...lines: readonly string[]): Promise<unknown[]> {
  const program = [
    'import json, sys, time',
    'from adtally import Adtally, AdtallyError, IncompleteAnswer',
    'def show(value): print(json.dumps(value, default=lambda of: of.__name__ if isinstance(of, type) else str(of)))',
    'def client(**options): return Adtally(sys.argv[1], sys.argv[2], **options)',
    'def rows_of(rows):',
    '    got = []',
    '    try:',
    '        for row in rows: got.append(row)',
    '    except Exception as error: return [len(got), type(error).__name__, str(error)]',
    '    return [len(got), None, None]',
    ...lines,
  ].join('\n');
  const PYTHONPATH = `${checkout}clients/python`;
  const env = { PATH: process.env.PATH, PYTHONPATH, PYTHONDONTWRITEBYTECODE: '1', PYTHONUTF8: '1' };
  const { stdout } = await run('python3', ['-c', program, url, token], { env, timeout: 50_000 });
  return stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
}

const ask = async (...lines: readonly string[]) =>
  python(`${service.url}/`, await service.token('advertiser'), ...lines);

/** Columns that are no counts, also of a comparison. */
const amounts = Object.values(catalog.families).flatMap(({ columns, measures }) =>
  columns.flatMap((name) =>
    measures[name]?.type === 'Numeric' ? [] : [name, `${name}_compared`, `${name}_change`],
  ),
);

test('a data frame is made of CSV, where a campaign may be called NA, names and ids are text, and amounts doubles', async () => {
  const [frame] = await ask(
    'class pandas:',
    '    @staticmethod',
    '    def read_csv(text, **options): return [text.read().decode(), options]',
    'sys.modules["pandas"] = pandas',
    `show(client().df('campaigns/device_date', ${march}))`,
  );
  const [text, options] = frame as [string, object];
  expect(text.split('\n')[0]).toContain('"device"');
  expect(text).toContain('123456789.000001');
  const texts = Object.values(catalog.dimensions).flatMap(({ key, columns }) => [
    key,
    ...columns.map(({ id }) => id),
  ]);
  expect(options).toEqual({
    keep_default_na: false,
    dtype: Object.fromEntries([
      ...texts.map((text) => [text, 'str']),
      ...amounts.map((amount) => [amount, 'float']),
    ]),
  });
});

test('rows, report and Arrow table say the same, and amounts are exact', async () => {
  const [rows, exact, report, days, arrow] = await ask(
    `rows = list(client().rows('campaigns/device_date', ${march}))`,
    'show([[row["campaign"], row["device"], row["spent"]] for row in rows])',
    'show(type(rows[1]["spent"]).__name__)',
    `report = client().report('campaigns/device_date', ${march})`,
    'show(report.rows == rows and len(report.column_metadata) == len(rows[0]))',
    'show([report.unconfirmed_revenue_dates, report.last_update_time[:2]])',
    `show(client().arrow_bytes('campaigns/device_date', ${march}).hex())`,
  );
  expect(rows).toEqual([
    ['campaign', 'mobile', '1.25'],
    ['größer', 'tv', '123456789.000001'],
  ]);
  expect([exact, report, days]).toEqual(['Decimal', true, [['2026-03-01'], '20']]);
  const table = tableFromIPC(Buffer.from(String(arrow), 'hex'));
  expect(table.toArray().map((each) => each.campaign)).toEqual(['campaign', 'größer']);
});

test('amounts and ratios are of one type, also where they are whole, and counts are whole numbers', async () => {
  const asked = `${march}, totals=True, compare_to='previous_period'`;
  const types = 'show({name: type(value).__name__ for name, value in totals.items()})';
  for (const family of Object.keys(catalog.families)) {
    const [exact, doubles] = await ask(
      `totals = client().report('${family}', ${asked}).result["totals"]`,
      types,
      `totals = client(parse_float=float).report('${family}', ${asked}).result["totals"]`,
      types,
    );
    const typesWith = (type: string) =>
      Object.fromEntries(
        Object.keys(Object(exact)).map((name) => [name, amounts.includes(name) ? type : 'int']),
      );
    expect([exact, doubles]).toEqual([typesWith('Decimal'), typesWith('float')]);
  }
});

test('a copy that follows the changed days is as the report, also after a day has changed', async () => {
  const program = [
    'from adtally import changed_rows',
    'from adtally.incremental import intervals',
    'copy = {}',
    'def follow(since):',
    '    until, changed = changed_rows(client(), "campaigns/device_date", since)',
    '    fetched = []',
    '    for part in changed:',
    '        for day in [day for day in copy if part.first_day <= day <= part.last_day]: del copy[day]',
    '        for row in part.rows: copy.setdefault(row["start_time"], []).append(row)',
    '        fetched.append([part.first_day, part.last_day])',
    '    return until, fetched',
    'until, fetched = follow("1970-01-01T00:00:00Z")',
    'show(fetched)',
    `whole = list(client().rows("campaigns/device_date", ${march}))`,
    'show([row for day in sorted(copy) for row in copy[day]] == whole)',
    'show(follow("2100-01-01T00:00:00Z")[1])',
    'show(list(intervals(["2026-02-28", "2026-03-01", "2026-03-03"])))',
    'try: changed_rows(client(), "campaigns/device", until)',
    'except ValueError: show("not by day")',
  ];
  expect(await ask(...program)).toEqual([
    [['2026-03-01', '2026-03-01']],
    true,
    [],
    [
      ['2026-02-28', '2026-03-01'],
      ['2026-03-03', '2026-03-03'],
    ],
    'not by day',
  ]);
});

test('adjustments are what came after a month was closed', async () => {
  const sides = { advertiser_id: 'closed', event_time: '2026-02-03T00:00:00Z' };
  await load(db.store, [event({ ...sides, spend: '1' })]);
  await close(db.store, '2026-02', 'closed', { anyway: true });
  await load(db.store, [event({ ...sides, spend: '-0.25', reason: 'chargeback' })]);
  const shown = await python(
    service.url,
    await service.token('closed'),
    'report = client().adjustments("campaigns", "2026-02-01", "2026-02-28", totals=True, by_load=True)',
    'show([[row["campaign_id"], row["reason"], row["spent"]] for row in report.rows])',
    'show(report.result["totals"]["spent"])',
  );
  expect(shown).toEqual([[['campaign', 'chargeback', '-0.25']], '-0.25']);
});

test('a file of the other side is compared', async () => {
  const shown = await ask(
    "file = 'day,campaign_id,impressions,paid\\n2026-03-01,größer,2,1.50\\n'.encode()",
    'result = client().reconcile("campaigns", file, end_time="2026-03-01", **{"columns.spend": "paid"})',
    'show([each["theirs"] for each in result["figures"].values()])',
    'show([row["status"] for row in result["differences"]])',
  );
  expect(shown).toEqual([
    ['2', '1.5'],
    ['only_ours', 'differs'],
  ]);
});

test('optional fields are keywords', async () => {
  const [shown] = await ask(
    `report = client().report('campaigns/device', ${march}, limit=1, filters={"device": ["tv"]}, totals=True)`,
    'show([len(report.rows), report.result["row_count"], report.result["totals"]["spent"]])',
  );
  expect(shown).toEqual([1, 1, '123456789.000001']);
});

test('a refusal says why, and no rows are no error', async () => {
  const [refused, login, none] = await ask(
    'try: client().report("campaigns", "2026-03-01", "2026-02-30")',
    'except AdtallyError as error: show([error.status, error.code, error.field, bool(error.request_id)])',
    'try: list(Adtally(sys.argv[1], "adt_none").rows("campaigns", "2026-03-01", "2026-03-01"))',
    'except AdtallyError as error: show(error.code)',
    `show(rows_of(client().rows('campaigns', '2020-01-01', '2020-01-01')))`,
  );
  expect(refused).toEqual([400, 'invalid_request', 'end_time', true]);
  expect([login, none]).toEqual(['unauthorized', [0, null, null]]);
});

test('a day of changes may have members that the client does not know: the service may be newer', async () => {
  const day = { day: '2026-03-01', changed_at: '2026-03-02T00:00:00.000000Z', unconfirmed: false, more: 1 };
  const result = { changed_until: '2026-03-03T00:00:00.000000Z', names_changed_at: null, days: [day] };
  server.answers(ends(JSON.stringify({ result })));
  expect(await python(server.url, 'adt_x', "show(client().changes('campaigns').days[0].day)")).toEqual([
    '2026-03-01',
  ]);
});

describe('an answer that is not whole', () => {
  const cut = 'x'.repeat(1_000);
  test.each([
    ['broken off between rows', breaksOff(row, row)],
    ['broken off in a row', breaksOff(row, row, row.slice(0, 9))],
    ['ended in a row', ends(row, row, row.slice(0, 9))],
    [
      'shorter than it said',
      (response: Parameters<ReturnType<typeof ends>>[0]) => {
        begins(response, { 'content-length': String(2 * row.length + cut.length) });
        response.write(row + row, () => response.destroy());
      },
    ],
  ])('raises behind its last row: %s', async (_, way) => {
    server.answers(way);
    const [rows] = await python(server.url, 'adt_x', `show(rows_of(client().rows('campaigns', ${march})))`);
    expect(rows).toEqual([2, 'IncompleteAnswer', expect.any(String)]);
    expect(server.requests).toBe(1);
  });

  test('raises as a report and as a table, too', async () => {
    server.answers(ends('{"result":{"rows":[{"campaign":"a"}'));
    const shown = await python(
      server.url,
      'adt_x',
      'for method in (client().report, client().arrow_bytes):',
      `    try: method('campaigns', ${march})`,
      '    except IncompleteAnswer: show("incomplete")',
    );
    expect(shown).toEqual(['incomplete', 'incomplete']);
  });
});

test('a service that stops is not waited for, and a loop that is left ends its report', async () => {
  let closed = 0;
  server.answers((response) => {
    response.once('close', () => {
      closed += 1;
    });
    begins(response).write(row);
  });
  const [stalled, left] = await python(
    server.url,
    'adt_x',
    `show(rows_of(client(timeout=0.3).rows('campaigns', ${march})))`,
    `rows = client().rows('campaigns', ${march})`,
    'show(next(rows)["campaign"])',
    'rows.close()',
    'time.sleep(0.1)',
  );
  expect(stalled).toEqual([1, expect.stringMatching(/timeout/i), expect.any(String)]);
  expect(left).toBe('a');
  await expect.poll(() => closed).toBe(2);
});
