import pino, { type Logger } from 'pino';
import { afterAll, beforeAll } from 'vitest';
import { createToken } from '../../src/accounts/tokens.ts';
import { loadConfig } from '../../src/config/config.ts';
import { type Receiver, startReceiver } from '../../src/receive/service.ts';
import { type EventLine, ndjson } from './events.ts';
import type { TestStore } from './store.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Of 200, what became of the body; else problem details. */
  readonly json: Record<string, unknown>;
}

export type TestReceiver = ReturnType<typeof useReceiver>;

export const bodyOf = (events: readonly EventLine[]): string => ndjson(events);

/** A service that takes events into the store of one test file, on a port of its own. */
export function useReceiver(
  test: TestStore,
  env: NodeJS.ProcessEnv = {},
  log: Logger = pino({ level: 'silent' }),
) {
  const tokens = new Map<string, Promise<string>>();
  let receiver: Receiver | undefined;
  const stop = async () => {
    await receiver?.stop();
    receiver = undefined;
  };
  beforeAll(async () => {
    const config = loadConfig({ RECEIVE_PORT: '0', ANSWER_TRUST_MS: '0', ...env });
    const { address } = test;
    const opened = { address, reporter: address, lost: new Promise<void>(() => {}), close: async () => {} };
    receiver = await startReceiver(config, opened, log);
  });
  afterAll(stop);
  /** A token of the name, made once. */
  const token = (sender: string) => {
    const known =
      tokens.get(sender) ?? createToken(test.store, { account: sender, label: 'test', purpose: 'ingest' });
    tokens.set(sender, known);
    return known;
  };
  return {
    get url() {
      return receiver?.url ?? '';
    },
    token,
    stop,
    /** Sends a body as `web`; NDJSON unless the headers say otherwise. */
    send: async (body: string | Buffer, headers: Record<string, string> = {}, query = '') =>
      sendTo(`${receiver?.url}/v1/events${query}`, body, {
        authorization: `Bearer ${await token('web')}`,
        ...headers,
      }),
  };
}

export async function sendTo(
  url: string,
  body: string | Buffer,
  headers: Record<string, string>,
): Promise<Answer> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson', ...headers },
    body: typeof body === 'string' ? body : new Uint8Array(body),
  });
  return { status: answer.status, headers: answer.headers, json: JSON.parse(await answer.text()) };
}
