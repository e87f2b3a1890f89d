import type { Address } from '../../clickhouse/client.ts';
import { cpuPerRequest } from '../harness/cpu.ts';
import {
  callRepeatedly,
  type HttpRequest,
  type Repeated,
  rateSide,
  transfer,
} from '../harness/http-client.ts';
import { median, percentile, ratio, runInTurn, type Side } from '../harness/measure.ts';
import { type Report, statementRequest, statementRequests } from '../harness/requests.ts';
import {
  type Bench,
  largest,
  neverAsked,
  type Outcome,
  report,
  type Service,
  smallest,
} from '../harness/scenario.ts';
import type { GoalValue } from '../report/goals.ts';

/** The smallest report, asked for the first time and again, by one and by many callers, beside others and for a year. */
export async function smallReports(bench: Bench, service: Service, address: Address): Promise<Outcome[]> {
  return [
    await oneCaller(bench, service, address),
    await againstNothing(bench, service, address),
    ...(await manyCallers(bench, service, statementRequests(address, smallest))),
    await underLoad(bench, service),
    await longRange(bench, service),
  ];
}

async function oneCaller(bench: Bench, service: Service, address: Address): Promise<Outcome> {
  bench.progress('smallest report, one caller');
  const first = () => service.request(neverAsked(smallest));
  const latency = (name: string, request: Repeated): Side => ({
    name,
    run: async () => median(await callRepeatedly(request, { callers: 1, seconds: bench.callSeconds })),
  });
  const sides = await runInTurn(
    [
      latency('adtally, first', first),
      latency('adtally, again', service.request(smallest)),
      latency('ClickHouse, the same two statements', statementRequests(address, smallest)),
      latency('ClickHouse, without the unconfirmed days', statementRequest(address, smallest)),
    ],
    bench.runs,
  );
  const value = ratio(sides[0]?.samples ?? [], sides[2]?.samples ?? []).median;
  const cpu = (requests: Repeated) =>
    cpuPerRequest(
      address,
      service.pid,
      async () => (await callRepeatedly(requests, { callers: 1, seconds: bench.callSeconds })).length,
    );
  const split = await cpu(first);
  const again = await cpu(service.request(smallest));
  const directly = await cpu(statementRequests(address, smallest));
  return {
    what: 'smallest report, one caller',
    unit: 'ms',
    sides,
    facts: {
      ...split,
      again_service_cpu_ms: again.service_cpu_ms,
      again_clickhouse_cpu_ms: again.clickhouse_cpu_ms,
      direct_clickhouse_cpu_ms: directly.clickhouse_cpu_ms,
    },
    goals: [{ goal: 'smallOne', value }],
  };
}

/** A first report of three days by device and day against the least that ClickHouse can be asked over HTTP. */
async function againstNothing(bench: Bench, service: Service, address: Address): Promise<Outcome> {
  bench.progress('a small report against SELECT 1');
  const asked = report('/v1/campaigns/breakdowns/device_date', 3, 'small');
  const options = { callers: 1, seconds: bench.callSeconds };
  const side = (name: string, request: Repeated): Side => ({
    name,
    run: async () => median(await callRepeatedly(request, options)),
  });
  const sides = await runInTurn(
    [
      side('adtally, first', () => service.request(neverAsked(asked))),
      side('ClickHouse, SELECT 1', {
        ...statementRequest(address, asked),
        url: address.url,
        body: 'SELECT 1',
      }),
    ],
    bench.runs,
  );
  const value = ratio(sides[0]?.samples ?? [], sides[1]?.samples ?? []).median;
  return {
    what: '3 days by device and day, one caller',
    unit: 'ms',
    sides,
    goals: [{ goal: 'smallFloor', value }],
  };
}

async function manyCallers(
  bench: Bench,
  service: Service,
  direct: readonly HttpRequest[],
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const callers of bench.quick ? [32] : [1, 8, 32, 256]) {
    bench.progress(`smallest report, ${callers} callers`);
    const options = { callers, seconds: bench.callSeconds };
    const sides = await runInTurn(
      [
        rateSide('adtally, first', () => service.request(neverAsked(smallest)), options),
        rateSide('adtally, again', service.request(smallest), options),
        rateSide('ClickHouse, the same two statements', direct, options),
      ],
      bench.runs,
    );
    const [first, again, directly] = sides.map(({ samples }) => samples);
    const goals: GoalValue[] = [
      { goal: 'smallMany', value: ratio(first ?? [], directly ?? []).median },
      { goal: 'smallAgain', value: ratio(again ?? [], directly ?? []).median },
    ];
    outcomes.push({
      what: `smallest report, ${callers} callers`,
      unit: 'requests/s',
      sides,
      ...(callers === 32 && { goals }),
    });
  }
  return outcomes;
}

/** One caller of the smallest report while two others stream the largest one. */
async function underLoad(bench: Bench, service: Service): Promise<Outcome> {
  bench.progress('smallest report beside the largest');
  const p99 = async () =>
    percentile(
      await callRepeatedly(() => service.request(neverAsked(smallest)), {
        callers: 1,
        seconds: bench.callSeconds,
      }),
      0.99,
    );
  const sides = await runInTurn(
    [
      {
        name: 'adtally, beside two callers of the largest report',
        run: async () => {
          const done = new AbortController();
          // By curl: what this process reads itself would be part of the small one's time.
          const caller = async () => {
            while (!done.signal.aborted) await transfer(service.request(largest));
          };
          const streaming = Promise.all([caller(), caller()]);
          // It is awaited later.
          streaming.catch(() => undefined);
          const measured = await p99().finally(() => done.abort());
          await streaming;
          return measured;
        },
      },
      { name: 'adtally, alone', run: p99 },
    ],
    bench.runs,
  );
  const value = ratio(sides[0]?.samples ?? [], sides[1]?.samples ?? []).median;
  return {
    what: 'smallest report, asked for the first time, 99th percentile',
    unit: 'ms',
    sides,
    goals: [{ goal: 'smallBeside', value }],
  };
}

/** What a longer range costs, asked for the first time. */
async function longRange(bench: Bench, service: Service): Promise<Outcome> {
  bench.progress('a year of a small account');
  const side = (name: string, asked: Report): Side => ({
    name,
    run: async () =>
      median(
        await callRepeatedly(() => service.request(neverAsked(asked)), {
          callers: 1,
          seconds: bench.callSeconds,
        }),
      ),
  });
  const sides = await runInTurn(
    [side('adtally, 365 days', report(smallest.path, 365, 'small')), side('adtally, 1 day', smallest)],
    bench.runs,
  );
  const value = ratio(sides[0]?.samples ?? [], sides[1]?.samples ?? []).median;
  return {
    what: 'base report of a small account, first',
    unit: 'ms',
    sides,
    goals: [{ goal: 'smallYear', value }],
  };
}
