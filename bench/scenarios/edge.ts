import assert from 'node:assert/strict';
import { eventsForEveryKey, largestReportRows } from '../data/network.ts';
import { cpuPerRequest } from '../harness/cpu.ts';
import { type HttpRequest, load, read, transfer } from '../harness/http-client.ts';
import { alternate, median, percentile, ratio, type Side } from '../harness/measure.ts';
import { askJsonEachRow, askNothingBack, askOwnStatement, askOwnStatements } from '../harness/requests.ts';
import { assertSameRows, linesOf, rowsOf } from '../harness/same-rows.ts';
import {
  type Bench,
  largest,
  type Outcome,
  openService,
  type Scenario,
  type Service,
  smallest,
} from '../harness/scenario.ts';

/** What the edge costs: reports from the service against the same SQL asked of ClickHouse directly. */
export const edge: Scenario = async (bench) => {
  const { address } = await bench.store(bench.events);
  const service = await openService(bench, address);
  try {
    for (const report of [largest, smallest]) {
      const ours = rowsOf(await read(service.ask(report)));
      assertSameRows(ours, linesOf(await read(askJsonEachRow(address, report))), report.path);
      assertSameRows(ours, rowsOf(await read(askOwnStatement(address, report))), report.path);
      if (report === largest && bench.events >= eventsForEveryKey)
        assert.equal(ours.length, largestReportRows);
    }
    return [
      await largestReport(bench, service, address),
      await compressedReport(bench, service, address),
      await oneCaller(bench, service, address),
      ...(await manyCallers(bench, service, askOwnStatements(address, smallest))),
      await underLoad(bench, service),
    ];
  } finally {
    await service.stop();
  }
};

export const whole = (name: string, request: HttpRequest): Side => ({
  name,
  run: async () => (await transfer(request)).seconds,
});

type Store = Parameters<typeof askOwnStatement>[0];

async function largestReport(bench: Bench, service: Service, address: Store): Promise<Outcome> {
  bench.say('largest report');
  const sides = await alternate(
    [
      whole('adtally', service.ask(largest)),
      whole('ClickHouse, JSONEachRow', askJsonEachRow(address, largest)),
      whole("ClickHouse, adtally's statement", askOwnStatement(address, largest)),
      whole('ClickHouse, rows thrown away', askNothingBack(address, largest)),
    ],
    bench.runs,
  );
  const [ours, direct] = sides;
  const { bytes } = await transfer(service.ask(largest));
  const cpu = (asked: HttpRequest) =>
    cpuPerRequest(address, service.pid, async () => {
      const transfers = Math.max(1, bench.runs);
      for (let n = 0; n < transfers; n++) await transfer(asked);
      return transfers;
    });
  const split = await cpu(service.ask(largest));
  const directly = await cpu(askJsonEachRow(address, largest));
  const value = ratio(ours?.samples ?? [], direct?.samples ?? []).median;
  return {
    what: 'largest report, identity',
    unit: 's',
    sides,
    facts: { megabytes: bytes / 1e6, ...split, directly_engine_cpu_ms: directly.engine_cpu_ms },
    chart: 'peers',
    goals: [{ goal: 'edgeIdentity', value }],
  };
}

async function compressedReport(bench: Bench, service: Service, address: Store): Promise<Outcome> {
  bench.say('largest report, zstd');
  const zstd = askJsonEachRow(address, largest);
  const sides = await alternate(
    [
      whole('adtally, zstd', service.ask(largest, 'zstd')),
      whole('ClickHouse, JSONEachRow, identity', askJsonEachRow(address, largest)),
      whole('ClickHouse, JSONEachRow, zstd', {
        ...zstd,
        url: `${zstd.url}&enable_http_compression=1&http_zlib_compression_level=1`,
        headers: { ...zstd.headers, 'accept-encoding': 'zstd' },
      }),
    ],
    bench.runs,
  );
  const [ours, direct] = sides;
  const { bytes } = await transfer(service.ask(largest, 'zstd'));
  const value = ratio(ours?.samples ?? [], direct?.samples ?? []).median;
  return {
    what: 'largest report, zstd, decompressed by the client',
    unit: 's',
    sides,
    facts: { megabytes: bytes / 1e6 },
    goals: [{ goal: 'edgeZstd', value }],
  };
}

async function oneCaller(bench: Bench, service: Service, address: Store): Promise<Outcome> {
  bench.say('smallest report, one caller');
  const latency = (name: string, request: HttpRequest | readonly HttpRequest[]): Side => ({
    name,
    run: async () => median(await load(request, { callers: 1, seconds: bench.loadSeconds })),
  });
  const sides = await alternate(
    [
      latency('adtally', service.ask(smallest)),
      latency('ClickHouse, the same two statements', askOwnStatements(address, smallest)),
      latency('ClickHouse, without the unconfirmed days', askOwnStatement(address, smallest)),
    ],
    bench.runs,
  );
  const value = ratio(sides[0]?.samples ?? [], sides[1]?.samples ?? []).median;
  const cpu = (asked: HttpRequest | readonly HttpRequest[]) =>
    cpuPerRequest(
      address,
      service.pid,
      async () => (await load(asked, { callers: 1, seconds: bench.loadSeconds })).length,
    );
  const split = await cpu(service.ask(smallest));
  const directly = await cpu(askOwnStatements(address, smallest));
  return {
    what: 'smallest report, one caller',
    unit: 'ms',
    sides,
    facts: { ...split, directly_engine_cpu_ms: directly.engine_cpu_ms },
    goals: [{ goal: 'smallOne', value }],
  };
}

async function manyCallers(
  bench: Bench,
  service: Service,
  direct: readonly HttpRequest[],
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const callers of bench.quick ? [32] : [1, 2, 4, 8, 16, 32, 64]) {
    bench.say(`smallest report, ${callers} callers`);
    const rate = (name: string, request: HttpRequest | readonly HttpRequest[]): Side => ({
      name,
      run: async () => {
        const startedAt = performance.now();
        const times = await load(request, { callers, seconds: bench.loadSeconds });
        return times.length / ((performance.now() - startedAt) / 1000);
      },
    });
    const sides = await alternate(
      [rate('adtally', service.ask(smallest)), rate('ClickHouse, the same two statements', direct)],
      bench.runs,
    );
    const value = ratio(sides[0]?.samples ?? [], sides[1]?.samples ?? []).median;
    outcomes.push({
      what: `smallest report, ${callers} callers`,
      unit: 'requests/s',
      sides,
      ...(callers === 32 && { goals: [{ goal: 'smallMany', value }] }),
    });
  }
  return outcomes;
}

/** Two callers that stream the largest report again and again, beside one that asks for the smallest. */
async function underLoad(bench: Bench, service: Service): Promise<Outcome> {
  bench.say('smallest report beside the largest');
  const p99 = async () =>
    percentile(await load(service.ask(smallest), { callers: 1, seconds: bench.loadSeconds }), 0.99);
  const sides = await alternate(
    [
      {
        name: 'adtally, beside two callers of the largest report',
        run: async () => {
          const done = new AbortController();
          const streaming = load(service.ask(largest), { callers: 2, seconds: 3600, signal: done.signal });
          const measured = await p99().finally(() => done.abort());
          await streaming;
          return measured;
        },
      },
      { name: 'adtally, alone', run: p99 },
    ],
    bench.runs,
  );
  return { what: 'smallest report, 99th percentile', unit: 'ms', sides };
}
