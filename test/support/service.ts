import pino, { type Logger } from 'pino';
import { afterAll, beforeAll } from 'vitest';
import { createToken } from '../../src/accounts/tokens.ts';
import { loadConfig } from '../../src/config/config.ts';
import { type Service, type ServiceTimes, startService } from '../../src/http/service.ts';
import { postJson } from './process.ts';
import type { TestStore } from './store.ts';

export interface ReportRow {
  [column: string]: string | number;
}

export interface Report {
  last_update_time: string;
  rows: ReportRow[];
  column_metadata: { id: string; type: string }[];
  unconfirmed_revenue_dates: string[];
}

export interface TestService {
  readonly url: string;
  /** Of ADMIN_PORT, if the service has one. */
  readonly adminUrl: string;
  /** A token of the account, made once. */
  token(account: string): Promise<string>;
  post(path: string, account: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  /** The result of a report that must succeed. */
  report(path: string, account: string, start: string, end: string): Promise<Report>;
}

/** The status of a report asked for with a token. */
export async function statusWith(url: string, token: string, path = '/v1/campaigns'): Promise<number> {
  const response = await postJson(
    `${url}${path}`,
    token,
    '{"start_time":"2026-03-01","end_time":"2026-03-31"}',
  );
  await response.arrayBuffer();
  return response.status;
}

/** A figure of `/metrics`, by its name and labels as they are written there; 0: it is not there yet. */
export async function metric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${name} `));
  return Number(line?.split(' ').at(-1) ?? 0);
}

/** The service of one test file, over HTTP on a port of its own, on the store of that file. */
export function useService(
  test: TestStore,
  env: NodeJS.ProcessEnv = {},
  log: Logger = pino({ level: 'silent' }),
  times?: ServiceTimes,
): TestService {
  const tokens = new Map<string, Promise<string>>();
  let service: Service | undefined;
  beforeAll(async () => {
    const config = loadConfig({ PORT: '0', RATE_LIMIT_REQUESTS: '1000000', ANSWER_TRUST_MS: '0', ...env });
    const { address } = test;
    const opened = { address, reporter: address, lost: new Promise<void>(() => {}), close: async () => {} };
    service = await startService(config, opened, log, times);
  });
  afterAll(() => service?.stop());

  const url = () => service?.url ?? '';
  const token = (account: string): Promise<string> => {
    const known = tokens.get(account) ?? createToken(test.store, { account, label: 'test' });
    tokens.set(account, known);
    return known;
  };
  const post: TestService['post'] = async (path, account, body, headers) =>
    postJson(`${url()}${path}`, await token(account), body, headers);
  return {
    get url() {
      return url();
    },
    get adminUrl() {
      return service?.adminUrl ?? '';
    },
    token,
    post,
    report: async (path, account, start, end) => {
      const response = await post(path, account, { start_time: start, end_time: end });
      const text = await response.text();
      if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`);
      return JSON.parse(text).result;
    },
  };
}
