import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type Address, connect, type Store, select } from '../../clickhouse/client.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { writeRows } from '../data/files.ts';
import { accountOf } from '../data/network.ts';
import { clickhouseMs } from '../harness/cpu.ts';
import { read, transfer } from '../harness/http-client.ts';
import { runLoader } from '../harness/loader.ts';
import { median, ratio, runInTurn, type Side, timed } from '../harness/measure.ts';
import { storeEnvironment } from '../harness/processes.ts';
import type { Report } from '../harness/requests.ts';
import { rowsOf } from '../harness/same-rows.ts';
import {
  type Bench,
  largest,
  neverAsked,
  type Outcome,
  openService,
  type Scenario,
  smallest,
} from '../harness/scenario.ts';

/** Months of which no day, one day, and every day changed since the moment that is asked for; a year lies between them. */
const months = { 'no day': '2021-12', 'one day': '2023-12', 'every day': '2025-12' } as const;
type Month = keyof typeof months;
const changes = Object.keys(months) as Month[];
const days = 31;
const closedMonth = '2024-12';
/** Events of each of the months whose reports are asked for. */
const mostReported = 300_000;
const accounts = { large: accountOf('campaigns', 'large'), small: accountOf('campaigns', 'small') };

/** Reports as of a moment against those of today, and the close of a month in which each event has a row of its own. */
export const past: Scenario = async (bench) => {
  const address = { ...bench.server, database: 'bench_past' };
  const root = connect({ ...bench.server, database: 'default' });
  const drop = () => root.command({ query: `DROP DATABASE IF EXISTS ${address.database} SYNC` });
  try {
    await drop();
    await migrate(address);
    const moment = await loadAndChange(bench, root, address);
    return [...(await asOfMoment(bench, root, address, moment)), await closes(bench, address)];
  } finally {
    await drop();
    await root.close();
  }
};

/** @returns the moment before days changed */
async function loadAndChange(bench: Bench, root: Store, address: Address): Promise<string> {
  const file = join(bench.scratch, 'past.parquet');
  const rows = Math.min(bench.events, mostReported);
  const load = async (which: readonly (readonly [string, string])[]) => {
    await writeRows(
      root,
      file,
      which.map(([from, select]) => `SELECT ${select} FROM ${from}`).join(' UNION ALL '),
    );
    await runLoader(bench.compiled, address, file);
    await rm(file);
  };
  bench.progress(`${bench.events} events`);
  await load([[`numbers(${bench.events})`, eventsOf(closedMonth, accounts.large, 'kept')]]);
  await load(
    changes.flatMap((change) => [
      [`numbers(${rows})`, eventsOf(months[change], accounts.large, 'kept')] as const,
      [`numbers(${days})`, eventsOf(months[change], accounts.small, 'kept')] as const,
    ]),
  );
  bench.progress('waiting, because the clocks of loaders may differ by a minute');
  await setTimeout(bench.quick ? 0 : 61_000);
  const [now] = await select<{ moment: string }>(
    root,
    "SELECT formatDateTime(now64(3, 'UTC'), '%Y-%m-%dT%H:%i:%S.%fZ') AS moment",
  );
  if (!now) throw new Error('ClickHouse did not tell the time');
  await load(
    Object.values(accounts).flatMap((account) => [
      ['numbers(1)', eventsOf(months['one day'], account, 'new')] as const,
      [`numbers(${days})`, eventsOf(months['every day'], account, 'new')] as const,
    ]),
  );
  return now.moment;
}

/** Columns of events, each with a key of its own, over all days of a month. */
function eventsOf(month: string, account: string, id: string): string {
  return `concat('${account}-${month}-${id}-', toString(number)) AS event_id,
    toDateTime64('${month}-01 12:00:00', 3, 'UTC') + toIntervalDay(number % ${days}) AS event_time,
    'impression' AS event_type, '${account}' AS advertiser_id, 'campaign' AS campaign_id,
    concat('creative-', toString(intDiv(number, ${days}))) AS creative_id, 'mobile' AS device,
    toUInt32(1) AS quantity, toDecimal64(1 + number % 997, 6) / 1000 AS spend, true AS confirmed`;
}

async function asOfMoment(bench: Bench, root: Store, address: Address, moment: string): Promise<Outcome[]> {
  const service = await openService(bench, address);
  const outcomes: Outcome[] = [];
  try {
    for (const asked of [largest, smallest]) {
      for (const change of changes) {
        const what = `${asked.path}, a month of which ${change} changed since, ${asked === largest ? 'large' : 'small'} account`;
        bench.progress(what);
        const ofMonth: Report = {
          ...asked,
          period: { start: `${months[change]}-01`, end: `${months[change]}-${days}` },
        };
        const then: Report = { ...ofMonth, options: { as_of: moment } };
        const rows = {
          today: rowsOf(await read(service.request(ofMonth))),
          before: rowsOf(await read(service.request(then))),
        };
        assert.equal(JSON.stringify(rows.today) === JSON.stringify(rows.before), change === 'no day');
        const cpu = { today: [] as number[], before: [] as number[] };
        const side = (name: string, when: keyof typeof cpu, report: Report): Side => ({
          name,
          run: async () => {
            const before = await clickhouseMs(root);
            const { seconds } = await transfer(service.request(neverAsked(report)));
            cpu[when].push((await clickhouseMs(root)) - before);
            return seconds;
          },
        });
        const sides = await runInTurn(
          [side('as of then', 'before', then), side('today', 'today', ofMonth)],
          bench.runs,
        );
        const [ofThen, today] = sides.map(({ samples }) => samples);
        outcomes.push({
          what,
          unit: 's',
          sides,
          facts: {
            rows: rows.before.length,
            clickhouse_cpu_ms_then: median(cpu.before.slice(-bench.runs)),
            clickhouse_cpu_ms_today: median(cpu.today.slice(-bench.runs)),
          },
          goals: [
            {
              goal: asked === largest ? 'asOf' : 'asOfSmall',
              value: ratio(ofThen ?? [], today ?? []).median,
            },
          ],
        });
      }
    }
    return outcomes;
  } finally {
    await service.stop();
  }
}

async function closes({ compiled, events, progress }: Bench, address: Address): Promise<Outcome> {
  progress(`close of ${closedMonth}`);
  const env = { PATH: process.env.PATH, NODE_ENV: 'production', ...storeEnvironment(address) };
  const args = ['src/cli.js', 'close', accounts.large, closedMonth];
  const seconds = await timed(() => promisify(execFile)(process.execPath, args, { cwd: compiled, env }));
  return {
    what: `close of a month of ${events / 1e6} million rows`,
    unit: 's',
    sides: [{ name: 'adtally close', samples: [seconds] }],
    goals: events < 10_000_000 ? [] : [{ goal: 'close', value: seconds * (10_000_000 / events) }],
  };
}
