import { mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { freePort } from '../../../bench/harness/free-ports.ts';
import { type Command, listening, startProcess } from '../../support/process.ts';
import { startNginx } from '../../support/shipped-proxies.ts';
import { useEmbeddedStore } from '../embedded-store.ts';

// There are more buffers on the way through nginx.
const db = useEmbeddedStore(400_000);
const { commands, env, enginePid, expectWholeReports } = db;
const folder = join(db.folder, 'nginx');
const answer = join(folder, 'answer');

/** Ways to put nginx before the service, as its administrators do. */
const ways = {
  'with its defaults': '',
  'with HTTP/1.1': 'proxy_http_version 1.1;',
  'without files': 'proxy_http_version 1.1; proxy_max_temp_file_size 0;',
  'without buffers': 'proxy_http_version 1.1; proxy_buffering off;',
  'as the docs say': 'proxy_http_version 1.1; if ($server_protocol = HTTP/1.0) { return 426; }',
};
type Way = keyof typeof ways;
const ports = new Map<string, number>();
beforeAll(async () => {
  mkdirSync(folder);
  for (const way of Object.keys(ways)) ports.set(way, await freePort());
});

/** The service, and nginx before it; what is done with them, then both are stopped. */
async function behindNginx(work: (urlOf: (way: Way) => string, url: string) => Promise<void>): Promise<void> {
  const serve = commands.start(['serve'], env);
  const url = await listening(serve);
  const urlOf = (way: Way) => `http://127.0.0.1:${ports.get(way)}`;
  const sites = Object.entries(ways).map(
    ([way, settings]) =>
      `server { listen 127.0.0.1:${ports.get(way)}; location / { proxy_pass ${url}; ${settings} } }`,
  );
  const configuration = `events {}\nhttp {\nerror_log ${folder}/error.log;\n${sites.join('\n')}\n}`;
  const nginx = await startNginx(folder, configuration, `${urlOf('with HTTP/1.1')}/healthz`);
  try {
    await work(urlOf, url);
  } finally {
    const { stderr } = await nginx.kill('SIGTERM');
    expect(stderr).toBe('');
  }
  expect((await serve.kill('SIGTERM')).code).toBe(0);
}

/** `curl` with these options asks for the largest report; it prints status and size. */
function curl(url: string, ...options: readonly string[]): Command {
  return ask(url, '2026-12-31', options);
}

function ask(url: string, end: string, options: readonly string[]): Command {
  return startProcess('curl', [
    ...['-sS', '-o', answer, '-w', '%{http_code} %{size_download}', ...options],
    ...['-H', `authorization: Bearer ${db.token}`, '-H', 'content-type: application/json'],
    ...['-d', `{"start_time":"2026-01-01","end_time":"${end}"}`],
    `${url}/v1/campaigns/breakdowns/device_creative_date`,
  ]);
}

test('nginx with its defaults speaks HTTP/1.0 to the service and gets 426, whatever its callers speak', async () => {
  await behindNginx(async (urlOf) => {
    for (const options of [[], ['-0'], ['--compressed'], ['-H', 'accept: text/csv']]) {
      const { code, stdout } = await curl(urlOf('with its defaults'), ...options).ended;
      expect({ code, stdout }, options.join(' ')).toEqual({
        code: 0,
        stdout: expect.stringMatching(/^426 \d{3}$/),
      });
    }
    const { stdout } = await curl(urlOf('as the docs say'), '-0').ended;
    expect(stdout).toMatch(/^426 /);
  });
});

test('nginx with HTTP/1.1 hands on whole answers', async () => {
  await behindNginx(async (urlOf, url) => {
    for (const options of [[], ['--compressed'], ['-H', 'accept: text/csv']]) {
      const sizes = new Set<string>();
      for (const through of [
        url,
        urlOf('with HTTP/1.1'),
        urlOf('without files'),
        urlOf('without buffers'),
        urlOf('as the docs say'),
      ]) {
        const { code, stdout } = await ask(through, '2026-01-31', options).ended;
        expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^200 /) });
        sizes.add(`${statSync(answer).size} bytes unpacked`);
      }
      expect([...sizes]).toEqual([expect.stringMatching(/^\d{8,} /)]);
    }
  });
});

// With files nginx has all of an answer long before its caller; then there is nothing to break.
test.each(['without files', 'without buffers'] as const)(
  'an answer that breaks off is broken for the callers of nginx, too: %s',
  async (way) => {
    await behindNginx(async (urlOf) => {
      for (const options of [[], ['-H', 'accept: text/csv'], ['--compressed']]) {
        rmSync(answer, { force: true });
        const asked = curl(urlOf(way), '--limit-rate', '2M', ...options);
        await expect
          .poll(() => statSync(answer, { throwIfNoEntry: false })?.size ?? 0, {
            timeout: 30_000,
            interval: 10,
          })
          .toBeGreaterThan(0);
        process.kill(enginePid(), 'SIGKILL');
        const { code, stderr } = await asked.ended;
        expect([18, 56, 92], stderr).toContain(code);
        await expectWholeReports(urlOf(way));
      }
    });
  },
);
