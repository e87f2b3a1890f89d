import assert from 'node:assert/strict';
import type { Address } from '../../clickhouse/client.ts';
import { eventsForEveryKey, largestReportRows } from '../data/network.ts';
import { cpuPerRequest } from '../harness/cpu.ts';
import { type HttpRequest, read, transfer, transferSide } from '../harness/http-client.ts';
import { ratio, runInTurn } from '../harness/measure.ts';
import { discardedRowsRequest, jsonEachRowRequest, statementRequest } from '../harness/requests.ts';
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
import { smallReports } from './small-reports.ts';

/** The cost of the HTTP service: its reports against the same SQL sent to ClickHouse directly. */
export const edge: Scenario = async (bench) => {
  const { address } = await bench.store(bench.events);
  const service = await openService(bench, address);
  try {
    for (const asked of [largest, smallest]) {
      const ours = rowsOf(await read(service.request(asked)));
      assertSameRows(ours, linesOf(await read(jsonEachRowRequest(address, asked))), asked.path);
      assertSameRows(ours, rowsOf(await read(statementRequest(address, asked))), asked.path);
      if (asked === largest && bench.events >= eventsForEveryKey)
        assert.equal(ours.length, largestReportRows);
    }
    return [
      await largestReport(bench, service, address),
      await compressedReport(bench, service, address),
      ...(await smallReports(bench, service, address)),
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
