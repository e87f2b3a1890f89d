import { connect as dial, type Socket } from 'node:net';
import { inject } from 'vitest';
import { type Command, listening, useCommands } from './process.ts';
import type { TestStore } from './store.ts';

export interface StoppedService {
  readonly serve: Command;
  readonly url: string;
  open(): Socket;
}

/** Starts services as processes of their own, which send to a caller that does not read for a minute. */
export function useServicesToStop(db: TestStore): (env?: NodeJS.ProcessEnv) => Promise<StoppedService> {
  const commands = useCommands();
  return async (env = {}) => {
    const { url: clickhouse, user, password } = inject('clickhouse');
    const serve = commands.start(['serve'], {
      CLICKHOUSE_URL: clickhouse,
      CLICKHOUSE_USER: user,
      CLICKHOUSE_PASSWORD: password,
      CLICKHOUSE_DATABASE: db.address.database,
      PORT: '0',
      SEND_TIMEOUT_SECONDS: '60',
      ...env,
    });
    const url = await listening(serve);
    return { serve, url, open: () => dial({ host: '127.0.0.1', port: Number(new URL(url).port) }) };
  };
}
