import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { buildBundle } from '../../../src/http/page/build.ts';
import { bundleFile } from '../../../src/http/page/bundle.ts';
import { content, useCalledService } from '../../support/called-service.ts';
import { fileOf } from '../../support/compiled.ts';
import { type Harm, harmOf, inHalfAGibibyte, messages } from '../../support/floods.ts';
import { useStore } from '../../support/store.ts';

const service = useCalledService(useStore(), { ...inHalfAGibibyte, SEND_TIMEOUT_SECONDS: '60' });

/** Measured, for whoever compares. */
function expectHarmless(what: string, { growthMb, slowestMs, slowestTimeMs }: Harm): void {
  console.log(
    `${what}: ${growthMb.toFixed()} MB more, others waited ${slowestMs.toFixed()} ms (${slowestTimeMs.toFixed()} here)`,
  );
  expect(growthMb).toBeLessThan(100);
  expect(slowestMs).toBeLessThan(1_000);
}

beforeAll(async () => {
  // As an installed build has it.
  const beside = dirname(fileOf('src/http/page/bundle'));
  writeFileSync(join(beside, bundleFile), JSON.stringify(await buildBundle()));
  // What is made when it is first asked for.
  for (const path of ['/docs', '/openapi.json', '/app', '/metrics'])
    await (await fetch(`${service.url}${path}`)).text();
});

test.each(Object.keys(messages('')))(
  '100 connections with 1,200 unread requests each harm nobody: %s',
  async (what) => {
    const message = messages(service.token)[what] ?? '';
    const repeats = Math.min(1_200, Math.ceil(2_000_000 / message.length));
    expectHarmless(what, await harmOf(service, { connections: 100, sends: message.repeat(repeats) }, 4_000));
  },
  60_000,
);

test.each<[string, number, () => string]>([
  ['say nothing', 2_000, () => ''],
  ['send the shortest requests', 2_000, () => 'GET / HTTP/1.1\r\n\r\n'.repeat(2_000)],
  ['have as many requests wait as they may', 2_000, () => mostWaiting(service.token)],
  ['ask for the documents', 2_000, () => 'GET /docs HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(500)],
  ['never end their headers', 2_000, () => `GET / HTTP/1.1\r\nX: ${'x'.repeat(15_000)}\r\n`],
  ['never end their body', 2_000, () => slowBody(service.token, 16_000)],
  ['never end a body that nobody may send', 2_000, () => slowBody('', 50_000_000)],
])(
  'connections that %s shut nobody out: %i of one address',
  async (what, connections, sends) => {
    expectHarmless(what, await harmOf(service, { connections, sends: sends() }, 6_000));
  },
  60_000,
);

/** The first is a report that nobody reads, the others have the longest headers that there may be. */
function mostWaiting(token: string): string {
  const [report = ''] = [messages(token)['reports with a token']];
  return report + `GET /healthz HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(15_000)}\r\n\r\n`.repeat(3);
}

function slowBody(token: string, bytes: number): string {
  const head = `POST /v1/campaigns HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`;
  return head + content.padEnd(Math.min(bytes - 1, 60_000));
}
