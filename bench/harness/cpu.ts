import { readFileSync } from 'node:fs';
import { type Address, connect, type Store, select } from '../../clickhouse/client.ts';

/** Milliseconds of CPU, which depend less on a busy machine than elapsed time does. */
export interface CpuMs {
  readonly clickhouse_cpu_ms: number;
  readonly service_cpu_ms: number;
}

/** One clock tick in /proc; there are always 100 a second. */
const tickMs = 10;

/**
 * The CPU time of ClickHouse and of a process per request.
 * @param work returns how many requests it made
 */
export async function cpuPerRequest(
  address: Address,
  pid: number,
  work: () => Promise<number>,
): Promise<CpuMs> {
  const store = connect(address);
  try {
    const before = { clickhouse: await clickhouseMs(store), service: processMs(pid) };
    const requests = await work();
    return {
      clickhouse_cpu_ms: ((await clickhouseMs(store)) - before.clickhouse) / requests,
      service_cpu_ms: (processMs(pid) - before.service) / requests,
    };
  } finally {
    await store.close();
  }
}

/** CPU time of ClickHouse since its start, in ms. */
export async function clickhouseMs(store: Store): Promise<number> {
  const [found] = await select<{ ms: number }>(
    store,
    `SELECT sum(value) / 1000 AS ms FROM system.events
     WHERE event IN ('UserTimeMicroseconds', 'SystemTimeMicroseconds')`,
  );
  return found?.ms ?? Number.NaN;
}

/** User and system time of a process in ms; NaN where there is no /proc. */
export function processMs(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return (Number(fields[11]) + Number(fields[12])) * tickMs;
  } catch {
    return Number.NaN;
  }
}
