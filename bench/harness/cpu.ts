import { readFileSync } from 'node:fs';
import { type Address, connect, select } from '../../clickhouse/client.ts';

/** Milliseconds of CPU, which a busy machine changes less than it changes time. */
export interface CpuMs {
  readonly engine_cpu_ms: number;
  readonly service_cpu_ms: number;
}

/** Ticks of the clock in /proc, which is 100 a second everywhere. */
const tickMs = 10;

/**
 * The CPU that ClickHouse and a process took for each of the requests of some work.
 * @param work returns how many requests it made
 */
export async function cpuPerRequest(
  address: Address,
  pid: number,
  work: () => Promise<number>,
): Promise<CpuMs> {
  const store = connect(address);
  try {
    const engine = async () => {
      const [found] = await select<{ ms: number }>(
        store,
        `SELECT sum(value) / 1000 AS ms FROM system.events
         WHERE event IN ('UserTimeMicroseconds', 'SystemTimeMicroseconds')`,
      );
      return found?.ms ?? Number.NaN;
    };
    const before = { engine: await engine(), service: processMs(pid) };
    const requests = await work();
    return {
      engine_cpu_ms: ((await engine()) - before.engine) / requests,
      service_cpu_ms: (processMs(pid) - before.service) / requests,
    };
  } finally {
    await store.close();
  }
}

/** User and system time of a process; NaN where there is no /proc. */
function processMs(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return (Number(fields[11]) + Number(fields[12])) * tickMs;
  } catch {
    return Number.NaN;
  }
}
