import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { endpoints, familyOf } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { Reader, type ReadStatement } from '../../clickhouse/reader.ts';
import { heldInput } from '../../ingest/input/held-input.ts';
import { closesOf } from '../../src/close/closes.ts';
import { answerOf } from '../../src/reconcile/answer.ts';
import { compareReport, readTheirFile } from '../../src/reconcile/their-file.ts';
import { adjustmentsRequest, closedBreakdown } from '../../src/report/adjustments.ts';
import { closedPlan, closedRevisions } from '../../src/report/closed-months.ts';
import { compileReport, compileUnconfirmedDates } from '../../src/report/compile.ts';
import { compileExplanation } from '../../src/report/explain/compile-explanation.ts';
import { explainedRow } from '../../src/report/explain/explain-request.ts';
import { planReport } from '../../src/report/plan.ts';
import { close } from '../support/closes.ts';
import { event, load, loadRows } from '../support/events.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const account = `o'hare "\`\\ {account:String}`;
const days = ['2026-03-01', '2026-03-02', '2026-03-03'];
const range = { start: '2026-03-01', end: '2026-03-31' };
const envelope = { lastUpdateTime: '2026-04-01 00:00:00 UTC', unconfirmedDates: [] };
const owner = /(account_id|advertiser_id|publisher_id) = \{account:String\} AND /g;

beforeAll(async () => {
  const of = (id: string, day: string) =>
    event({
      ...{ advertiser_id: id, publisher_id: id, campaign_id: `${id}'s`, ad_unit_id: `${id}'s` },
      ...{ event_time: `${day}T12:00:00Z`, spend: '1', revenue: '1' },
    });
  await load(
    db.store,
    ['another', account].flatMap((id, n) => days.slice(n).map((day) => of(id, day))),
  );
  await loadRows(db.store, 'confirmations', [['another', '2026-03-02']]);
  await close(db.store, '2026-03', undefined, { anyway: true });
});

const revisionOf = async (id: string) => (await closesOf(db.store, { account: id }))[0]?.revision ?? '';

/** The answer to a statement that has forgotten whose report it is. */
async function careless({ query, params, settings }: ReadStatement): Promise<unknown[]> {
  expect(query).toMatch(owner);
  return select(db.store, query.replaceAll(owner, '').replace(/FORMAT \w+$/, ''), params, settings);
}

test.each(endpoints(catalog))(
  'a statement for $path that forgets the account has no row of another',
  async (endpoint) => {
    const plan = planReport(catalog, endpoint.breakdown, account, range);
    const rows = await careless(compileReport(plan, envelope, 'ndjson'));
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toContain('another');
    const dates = await careless(compileUnconfirmedDates(plan));
    expect(dates).toEqual([{ day: '2026-03-02' }, { day: '2026-03-03' }]);
  },
);

test.each(endpoints(catalog))(
  'a statement for $path as of a close, or for what changed since, that forgets the account has no row of another',
  async ({ breakdown }) => {
    const plan = planReport(catalog, breakdown, account, range, undefined, {
      options: { as_of: 'closed' },
      reads: breakdown.dimensions,
    });
    const statement = closedRevisions(plan);
    const revisions = (await careless(statement)).map((row) => Object(row).revision);
    expect(revisions).toEqual([await revisionOf(account)]);
    const all = [...revisions, await revisionOf('another')];
    const closed = closedPlan(plan, all);
    const rows = await careless(compileReport(closed, envelope, 'ndjson'));
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toContain('another');
    expect(await careless(compileUnconfirmedDates(closed))).toEqual([
      { day: '2026-03-02' },
      { day: '2026-03-03' },
    ]);
  },
);

test.each(endpoints(catalog))(
  'a statement for $path as of a moment that forgets the account has no row of another',
  async ({ breakdown }) => {
    const options = { moment: `${Date.now()}000`, ids: true as const };
    const past = {
      changed: ['2026-03-02'],
      rewrites: '',
      lastChange: '',
    };
    const plan = {
      ...planReport(catalog, breakdown, account, range, undefined, { options, reads: breakdown.dimensions }),
      past,
    };
    const rows = await careless(compileReport(plan, envelope, 'ndjson'));
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toContain('another');
    expect(await careless(compileUnconfirmedDates(plan))).toEqual([
      { day: '2026-03-02' },
      { day: '2026-03-03' },
    ]);
  },
);

test.each(Object.keys(catalog.families))(
  'adjustments of %s that forget the account have no row of another',
  async (family) => {
    const asked = adjustmentsRequest(catalog, family, { start_time: range.start, end_time: range.end });
    const revisions = [await revisionOf('another'), await revisionOf(account)];
    const plan = {
      ...planReport(catalog, closedBreakdown(catalog, family), account, range, undefined, asked),
      adjusted: revisions,
    };
    expect(await careless(compileReport(plan, envelope, 'ndjson'))).toEqual([]);

    // As if nothing had been closed yet, all of it came since.
    const options = { ...plan.options, by_load: true as const };
    const split = { ...plan, options, adjusted: [], closedAt: '{}' };
    const rows = await careless(compileReport(split, envelope, 'ndjson'));
    expect(rows.map((row) => Object(row).change)).toEqual(['loaded', 'loaded']);
    expect(JSON.stringify(rows)).not.toContain('another');
  },
);

test.each(Object.keys(catalog.families))(
  'an explanation of %s that forgets the account has no part of another',
  async (family) => {
    const asked = { start_time: range.start, end_time: range.end, row: {} };
    const statement = compileExplanation(explainedRow(catalog, family, account, asked));
    expect(await careless(statement)).toMatchObject([{ result: { row: { impressions: 2 } } }]);
  },
);

test.each(Object.keys(catalog.families))(
  'a comparison with %s whose statements all forget the account has the outcome of one that does not',
  async (family) => {
    const { entity } = familyOf(catalog, family);
    const lines = days.map((day) => `${day},${account}'s,${day.at(-1)}`);
    const file = `event_time,${entity}_id,impressions\n${lines.join('\n')}\n`;
    const reader = new Reader(db.address, 60_000);
    let forgotten = 0;
    const forgetting = new Reader(db.address, 60_000);
    const stream = forgetting.stream.bind(forgetting);
    forgetting.stream = (statement, options) => {
      forgotten += statement.query.match(owner)?.length ?? 0;
      return stream({ ...statement, query: statement.query.replaceAll(owner, '') }, options);
    };
    const answers: string[] = [];
    for (const each of [reader, forgetting]) {
      const whose = { catalog, family, account, timezone: 'UTC', routing: undefined, namesFiles: false };
      const asked = { input: heldInput('theirs', ['csv'], Buffer.from(file)), mapping: {} };
      const report = await readTheirFile(db.store, each, whose, asked);
      const reconciled = await compareReport(
        { ...whose, reader: each },
        report,
        {},
        'theirs',
        async () => [],
      );
      answers.push(await answerOf(reconciled, report, '0'));
      each.close();
    }
    expect(answers[1]).toBe(answers[0]);
    expect(answers[0]).toContain('"ours":"2"');
    expect(forgotten).toBeGreaterThan(5);
  },
);

test.each([
  ['before a comparison', '202603', 0, true],
  ['while it was made', '202603', 1, true],
  ['of another month', '202604', 0, false],
])('a part that was damaged %s', async (_, partition, seenAt, refuses) => {
  const reader = new Reader(db.address, 60_000);
  onTestFinished(() => reader.close());
  const whose = {
    catalog,
    family: 'campaigns',
    account,
    timezone: 'UTC',
    routing: undefined,
    namesFiles: false,
  };
  const asked = {
    input: heldInput('theirs', ['csv'], Buffer.from('event_time,campaign_id,impressions\n2026-03-02,a,1\n')),
    mapping: {},
  };
  const report = await readTheirFile(db.store, reader, whose, asked);
  const part = { table: 'campaigns_device_creative_date', partition, part: 'all_1_1_0' };
  let looks = 0;
  const compared = compareReport({ ...whose, reader }, report, {}, 'theirs', async () =>
    looks++ === seenAt ? [part] : [],
  );
  await (refuses ? expect(compared).rejects.toThrow(/damaged/) : compared);
  expect(looks).toBe(2);
});
