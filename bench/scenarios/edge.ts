import assert from 'node:assert/strict';
import type { Address } from '../../clickhouse/client.ts';
import { eventsForEveryKey, largestReportRows } from '../data/network.ts';
import { cpuPerRequest } from '../harness/cpu.ts';
import {
  callRepeatedly,
  type HttpRequest,
  type Repeated,
  rateSide,
  read,
  transfer,
  transferSide,
} from '../harness/http-client.ts';
import { median, percentile, ratio, runInTurn, type Side } from '../harness/measure.ts';
import {
  discardedRowsRequest,
  jsonEachRowRequest,
  statementRequest,
  statementRequests,
} from '../harness/requests.ts';
import { assertSameRows, linesOf, rowsOf } from '../harness/same-rows.ts';
import {
  type Bench,
  largest,
  neverAsked,
  type Outcome,
  openService,
  type Scenario,
  type Service,
  smallest,
} from '../harness/scenario.ts';
import type { GoalValue } from '../report/goals.ts';

/** The cost of the HTTP service: its reports against the same SQL sent to ClickHouse directly. */
export const edge: Scenario = async (bench) => {
  const { address } = await bench.store(bench.events);
  const service = await openService(bench, address);
  try {
    for (const report of [largest, smallest]) {
      const ours = rowsOf(await read(service.request(report)));
      assertSameRows(ours, linesOf(await read(jsonEachRowRequest(address, report))), report.path);
      assertSameRows(ours, rowsOf(await read(statementRequest(address, report))), report.path);
      if (report === largest && bench.events >= eventsForEveryKey)
        assert.equal(ours.length, largestReportRows);
    }
    return [
      await largestReport(bench, service, address),
      await compressedReport(bench, service, address),
      await oneCaller(bench, service, address),
      ...(await manyCallers(bench, service, statementRequests(address, smallest))),
      await underLoad(bench, service),
    ];
  } finally {
    await service.stop();
  }
};

async function largestReport(bench: Bench, service: Service, address: Address): Promise<Outcome> {
  bench.progress('largest report');
  const sides = await runInTurn(
    [
      transferSide('adtally', service.request(largest)),
      transferSide('ClickHouse, JSONEachRow', jsonEachRowRequest(address, largest)),
      transferSide("ClickHouse, adtally's statement", statementRequest(address, largest)),
      transferSide('ClickHouse, rows discarded', discardedRowsRequest(address, largest)),
    ],
    bench.runs,
  );
  const [ours, direct] = sides;
  const { bytes } = await transfer(service.request(largest));
  const cpu = (request: HttpRequest) =>
    cpuPerRequest(address, service.pid, async () => {
      const transfers = Math.max(1, bench.runs);
      for (let n = 0; n < transfers; n++) await transfer(request);
      return transfers;
    });
  const split = await cpu(service.request(largest));
  const directly = await cpu(jsonEachRowRequest(address, largest));
  const value = ratio(ours?.samples ?? [], direct?.samples ?? []).median;
  return {
    what: 'largest report, identity',
    unit: 's',
    sides,
    facts: { megabytes: bytes / 1e6, ...split, direct_clickhouse_cpu_ms: directly.clickhouse_cpu_ms },
    chart: 'peers',
    goals: [{ goal: 'edgeIdentity', value }],
  };
}

async function compressedReport(bench: Bench, service: Service, address: Address): Promise<Outcome> {
  bench.progress('largest report, zstd');
  const zstd = jsonEachRowRequest(address, largest);
  const sides = await runInTurn(
    [
      transferSide('adtally, zstd', service.request(largest, 'zstd')),
      transferSide('ClickHouse, JSONEachRow, identity', jsonEachRowRequest(address, largest)),
      transferSide('ClickHouse, JSONEachRow, zstd', {
        ...zstd,
        url: `${zstd.url}&enable_http_compression=1&http_zlib_compression_level=1`,
        headers: { ...zstd.headers, 'accept-encoding': 'zstd' },
      }),
    ],
    bench.runs,
  );
  const [ours, direct] = sides;
  const { bytes } = await transfer(service.request(largest, 'zstd'));
  const value = ratio(ours?.samples ?? [], direct?.samples ?? []).median;
  return {
    what: 'largest report, zstd, decompressed by the client',
    unit: 's',
    sides,
    facts: { megabytes: bytes / 1e6 },
    goals: [{ goal: 'edgeZstd', value }],
  };
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
          const streaming = callRepeatedly(service.request(largest), {
            callers: 2,
            seconds: 3600,
            signal: done.signal,
          });
          const measured = await p99().finally(() => done.abort());
          await streaming;
          return measured;
        },
      },
      { name: 'adtally, alone', run: p99 },
    ],
    bench.runs,
  );
  return { what: 'smallest report, asked for the first time, 99th percentile', unit: 'ms', sides };
}
