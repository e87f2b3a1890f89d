import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:https';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createToken } from '../../../src/accounts/tokens.ts';
import { certificateIn } from '../../support/certificate.ts';
import { useFolder } from '../../support/folder.ts';
import { environmentOf, listening, postJson, useCommands } from '../../support/process.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const commands = useCommands();
const folder = useFolder();
const files = certificateIn(folder);

/** The real ClickHouse behind TLS, with a certificate that only its own authority knows: itself. */
const secured = createServer(
  { key: readFileSync(files.key), cert: readFileSync(files.cert) },
  (asked, answer) => {
    const { method, headers, url } = asked;
    const on = request(`${db.address.url}${url}`, { method, headers }, (got) => {
      answer.writeHead(got.statusCode ?? 500, got.headers);
      got.pipe(answer);
    });
    asked.pipe(on.on('error', () => answer.destroy()));
  },
);
let env: Record<string, string>;
beforeAll(async () => {
  await once(secured.listen(0, '127.0.0.1'), 'listening');
  const address = secured.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  env = environmentOf({ ...db.address, url: `https://localhost:${port}` });
});
afterAll(() => void secured.close());

test('a ClickHouse whose certificate nobody vouches for is sent no password', async () => {
  let asked = 0;
  secured.on('request', () => asked++);
  const { code, stderr } = await commands.run(['token', 'list'], env);
  expect([code, asked]).toEqual([1, 0]);
  expect(stderr).toMatch(/certificate/);
});

test('with the file of its authority commands and reports reach it over TLS', async () => {
  const trusting = { ...env, NODE_EXTRA_CA_CERTS: files.cert };
  const token = await createToken(db.store, { account: 'a', label: 'over TLS' });
  const listed = await commands.run(['token', 'list'], trusting);
  expect([listed.code, listed.stdout]).toEqual([0, expect.stringContaining('over TLS')]);
  const url = await listening(commands.start(['serve'], { ...trusting, PORT: '0' }));
  const answer = await postJson(
    `${url}/v1/campaigns`,
    token,
    '{"start_time":"2026-03-01","end_time":"2026-03-31"}',
  );
  expect([answer.status, JSON.parse(await answer.text()).result.rows]).toEqual([200, []]);
});
