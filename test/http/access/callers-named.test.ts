import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import { createToken, newToken, revokeTokens } from '../../../src/accounts/tokens.ts';
import { callersBehind, networkOf } from '../../../src/http/request/caller-address.ts';
import { openLog } from '../../../src/observe/log.ts';
import { metric, useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const lines: string[] = [];
const log = openLog('info', { write: (line) => void lines.push(line) });
const db = useStore();
const service = useService(db, { TRUSTED_PROXIES: '127.0.0.0/8, ::1', RATE_LIMIT_REQUESTS: '4' }, log);

const ask = (headers: Record<string, string>) =>
  fetch(`${service.url}/v1/campaigns`, { method: 'POST', headers, body: '{}' });

async function lineOf(request: string): Promise<Record<string, unknown>> {
  const find = () => lines.map((line) => JSON.parse(line)).find((line) => line.request === request);
  return vi.waitUntil(find, { timeout: 10_000 });
}

describe('a refused login is logged with address and reason, counted by it, and the caller is not told', () => {
  const bearers: Record<string, () => Promise<string | undefined>> = {
    missing: async () => undefined,
    malformed: async () => 'Bearer adt_mistyped',
    unknown: async () => `Bearer ${newToken()}`,
    expired: async () =>
      `Bearer ${await createToken(db.store, { account: 'a', label: '', expires: new Date(Date.now() - 1_000) })}`,
    revoked: async () => {
      const token = await createToken(db.store, { account: 'gone', label: '' });
      await revokeTokens(db.store, { account: 'gone' });
      // The service may have learned of it before it was revoked.
      const authorization = `Bearer ${token}`;
      await expect.poll(async () => (await ask({ authorization })).status, { timeout: 10_000 }).toBe(401);
      await expect.poll(() => count('revoked')).toBe(1);
      return authorization;
    },
  };
  const count = (reason: string) => metric(service.url, `adtally_logins_refused_total{reason="${reason}"}`);
  test.each(Object.entries(bearers))('%s', async (reason, bearer) => {
    const authorization = await bearer();
    const address = `198.51.100.${Object.keys(bearers).indexOf(reason) + 1}`;
    const before = await count(reason);
    const answer = await ask({
      'x-request-id': `refused-${reason}`,
      'x-forwarded-for': `203.0.113.9, ${address}, 127.0.0.7`,
      ...(authorization !== undefined && { authorization }),
    });
    expect(answer.status).toBe(401);
    expect(JSON.parse(await answer.text()).detail).toBe(
      'a valid login token is required: authorization: Bearer <LOGIN_TOKEN>',
    );
    const stored = reason === 'expired' || reason === 'revoked';
    const line = await lineOf(`refused-${reason}`);
    expect(line).toMatchObject({ status: 401, address, refused: reason });
    expect(line.token).toEqual(stored ? expect.stringMatching(/^\w{10}$/) : undefined);
    await expect.poll(() => count(reason)).toBe(before + 1);
    if (authorization) expect(lines.join('')).not.toContain(authorization.slice(10));
  });
});

test('who fails behind a proxy is limited alone, and what a caller invents in front does not help it', async () => {
  const failing = (address: string) =>
    ask({ authorization: 'Bearer no', 'x-forwarded-for': address }).then(({ status }) => status);
  const statuses: number[] = [];
  for (let n = 0; n < 6; n++) statuses.push(await failing(`192.0.2.${n}, 198.51.100.99`));
  expect(statuses).toEqual([401, 401, 401, 401, 429, 429]);
  expect(await failing('198.51.100.100')).toBe(401);
  const network: number[] = [];
  for (let n = 0; n < 6; n++) network.push(await failing(`2001:db8:1:2::${n}`));
  expect(network).toEqual([401, 401, 401, 401, 429, 429]);
  expect(await failing('2001:db8:1:3::1')).toBe(401);
});

describe('the address of a caller', () => {
  const callerOf = callersBehind(['10.0.0.0/8', 'fd00::/8', '192.0.2.1']);
  const from = (remote: string, forwarded?: string) => {
    const socket = new Socket();
    Object.defineProperty(socket, 'remoteAddress', { value: remote });
    const incoming = new IncomingMessage(socket);
    if (forwarded !== undefined) incoming.headers['x-forwarded-for'] = forwarded;
    return callerOf(incoming).address;
  };
  test.each<[string, string | undefined, string]>([
    ['198.51.100.1', '203.0.113.1', '198.51.100.1'],
    ['10.0.0.1', undefined, '10.0.0.1'],
    ['10.0.0.1', '203.0.113.1', '203.0.113.1'],
    ['::ffff:10.0.0.1', '203.0.113.1', '203.0.113.1'],
    ['10.0.0.1', '203.0.113.1, 198.51.100.7, 192.0.2.1', '198.51.100.7'],
    ['10.0.0.1', '203.0.113.1, nonsense, 192.0.2.1', '192.0.2.1'],
    ['10.0.0.1', '203.0.113.1:5678', '203.0.113.1'],
    ['fd00::1', '[2001:db8::1]:443', '2001:db8::1'],
    ['10.0.0.1', '10.0.0.2, 10.0.0.3', '10.0.0.2'],
    ['10.0.0.1', '', '10.0.0.1'],
  ])('%s, forwarded for %s: %s', (remote, forwarded, address) => {
    expect(from(remote, forwarded)).toBe(address);
  });

  test.each([
    ['198.51.100.1', '198.51.100.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['2001:DB8::', '2001:db8:0:0::/64'],
    ['unknown', 'unknown'],
  ])('%s is counted as %s', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});
