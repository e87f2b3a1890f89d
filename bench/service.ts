import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Address } from '../clickhouse/client.ts';

export interface ServiceProcess {
  readonly url: string;
  stop(): Promise<void>;
}

/** A real `serve` process on a store, as an operator would run it. */
export async function startServiceProcess(address: Address): Promise<ServiceProcess> {
  const cli = fileURLToPath(new URL('../src/cli.ts', import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', cli, 'serve'], {
    env: {
      ...process.env,
      CLICKHOUSE_URL: address.url,
      CLICKHOUSE_USER: address.user,
      CLICKHOUSE_PASSWORD: address.password,
      CLICKHOUSE_DATABASE: address.database,
      PORT: '0',
      RATE_LIMIT_REQUESTS: '1000000',
    },
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  const log = createInterface({ input: child.stderr });
  for await (const line of log) {
    const [, url] = /listening on (http:\S+?)[";]/.exec(line) ?? [];
    if (url === undefined) continue;
    child.stderr.resume();
    return {
      url,
      stop: async () => {
        child.kill();
        await once(child, 'exit');
      },
    };
  }
  throw new Error('the service did not start');
}
