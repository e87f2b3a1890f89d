import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../../bench/harness/free-ports.ts';
import { maxFileBytes } from '../../../src/reconcile/limits.ts';
import { useFolder } from '../../support/folder.ts';
import { startProcess } from '../../support/process.ts';
import { proxyOfCluster, proxyOfDocs, startNginx } from '../../support/shipped-proxies.ts';

const folder = useFolder();

/** A service that says how large a body is, breaks off, or has as many headers as Node.js takes. */
const service = createServer(async (request, response) => {
  let bytes = 0;
  for await (const piece of request) bytes += piece.length;
  if (request.url === '/broken') response.write('rows', () => response.destroy());
  else if (request.url === '/headers') response.setHeader('large', 'x'.repeat(15_000)).end('told');
  else response.end(`${bytes}`);
});
afterAll(() => service.close());

describe.each([
  [
    'clickhouse/config/cluster/proxy.conf',
    (port: number, listen: number) => proxyOfCluster([port, port], listen),
  ],
  ['docs/security.md', proxyOfDocs],
])('the nginx of %s', (_, configured) => {
  let url = '';
  let stop: () => Promise<unknown> = async () => undefined;
  beforeAll(async () => {
    if (!service.listening) await once(service.listen(0, '127.0.0.1'), 'listening');
    const { port } = service.address() as AddressInfo;
    const listen = await freePort();
    url = `http://127.0.0.1:${listen}`;
    const nginx = await startNginx(folder, configured(port, listen), url);
    stop = () => nginx.kill('SIGTERM');
  });
  afterAll(() => stop());

  const curl = async (path: string, ...options: readonly string[]) => {
    const { code, stdout } = await startProcess('curl', [
      '-sS',
      '-w',
      ' %{http_code}',
      ...options,
      url + path,
    ]).ended;
    return { code, stdout };
  };

  test('refuses HTTP/1.0, over which an answer that breaks off would look whole', async () => {
    expect(await curl('/broken')).toEqual({ code: 18, stdout: 'rows 200' });
    for (const path of ['/', '/broken']) {
      const { code, stdout } = await curl(path, '--http1.0');
      expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/ 426$/) });
      expect(stdout).not.toContain('rows');
    }
  });

  test('lets headers through that are as large as those of many accounts or unconfirmed days', async () => {
    expect(await curl('/headers')).toEqual({ code: 0, stdout: 'told 200' });
  });

  test('lets a file to compare through, as large as the service takes it', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, Buffer.alloc(maxFileBytes));
    const answer = await curl('/', '--data-binary', `@${file}`);
    expect(answer).toEqual({ code: 0, stdout: `${maxFileBytes} 200` });
  });
});
