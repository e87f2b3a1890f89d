import type { Address } from '../../clickhouse/client.ts';
import { cpuPerRequest } from '../harness/cpu.ts';
import { type HttpRequest, transfer, transferSide } from '../harness/http-client.ts';
import { ratio, runInTurn, type Samples } from '../harness/measure.ts';
import { discardedRowsRequest, jsonEachRowRequest, statementRequest } from '../harness/requests.ts';
import { type Bench, largest, type Outcome, type Service } from '../harness/scenario.ts';
import { startTlsProxy } from '../harness/tls-proxy.ts';

/** The largest report as it is, packed, and behind TLS. */
export async function largeReports(bench: Bench, service: Service, address: Address): Promise<Outcome[]> {
  return [
    await largestReport(bench, service, address),
    await compressedReport(bench, service, address),
    ...(await behindTls(bench, service)),
  ];
}

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
  const [ours, direct, own] = sides;
  const { bytes } = await transfer(service.request(largest));
  const cpu = (request: HttpRequest) =>
    cpuPerRequest(address, service.pid, async () => {
      const transfers = Math.max(1, bench.runs);
      for (let n = 0; n < transfers; n++) await transfer(request);
      return transfers;
    });
  const split = await cpu(service.request(largest));
  const directly = await cpu(jsonEachRowRequest(address, largest));
  const against = (other?: Samples) => ratio(ours?.samples ?? [], other?.samples ?? []).median;
  return {
    what: 'largest report, identity',
    unit: 's',
    sides,
    facts: { megabytes: bytes / 1e6, ...split, direct_clickhouse_cpu_ms: directly.clickhouse_cpu_ms },
    chart: 'peers',
    goals: [
      { goal: 'edgeIdentity', value: against(direct) },
      { goal: 'edgeStatement', value: against(own) },
    ],
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

async function behindTls(bench: Bench, service: Service): Promise<Outcome[]> {
  bench.progress('largest report, TLS');
  const proxy = await startTlsProxy(bench.scratch, service.url).catch((error: Error) =>
    bench.skip(error.message),
  );
  if (!proxy) return [];
  try {
    const plain = service.request(largest);
    const sides = await runInTurn(
      [
        transferSide('adtally, behind nginx with TLS', {
          ...plain,
          url: plain.url.replace(service.url, proxy.url),
        }),
        transferSide('adtally, directly', plain),
      ],
      bench.runs,
    );
    const value = ratio(sides[0]?.samples ?? [], sides[1]?.samples ?? []).median;
    return [{ what: 'largest report, AES-128-GCM', unit: 's', sides, goals: [{ goal: 'edgeTls', value }] }];
  } finally {
    await proxy.stop();
  }
}
